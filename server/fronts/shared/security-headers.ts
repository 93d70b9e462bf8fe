// The headers that tell a browser what it may not do with an answer. Two policies: answers of an
// API are never a document, pages run their own scripts and nothing else.

type Headers = Readonly<Record<string, string>>;

const always: Headers = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

/** For answers of an API: nothing loads, nothing frames them, nothing keeps them. */
export const apiHeaders: Headers = {
  ...always,
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

/**
 * For pages and their assets: same origin alone, no inline script or style, no framing, no
 * plug-ins.
 */
export const pageHeaders: Headers = {
  ...always,
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "object-src 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};
