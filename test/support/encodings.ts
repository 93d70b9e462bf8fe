// How a secret may be written in a file, and which of some secrets a text has in it.

/** The forms of a secret in a file; in Base64, the parts that stay the same wherever it begins. */
const encodingsOf = (secret: string): readonly string[] => {
  const bytes = Buffer.from(secret);
  const base64 = [0, 1, 2].map((before) =>
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .slice(before === 0 ? 0 : 4, -4),
  );
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    [...secret].reverse().join(''),
  ];
};

/** Where the secrets are that the text has in it, in any usual encoding. */
export const leaksIn = (text: string, secrets: ReadonlyMap<string, string>): readonly string[] =>
  [...secrets].filter(([, secret]) => encodingsOf(secret).some((each) => text.includes(each))).map(([where]) => where);
