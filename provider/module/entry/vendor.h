/*
 * The library's own interface, in addition to those of the standard: C_GetInterface with the name
 * "Vendor DKE". Include pkcs11.h first.
 *
 * A later version 1.x adds functions at the end and changes none that is here.
 */
#ifndef DKE_VENDOR_H
#define DKE_VENDOR_H

#define DKE_INTERFACE_NAME "Vendor DKE"

typedef struct DKE_FUNCTIONS {
  CK_VERSION version; /* 1.0 */
  /**
   * Why the last call of this thread failed: what happened, then what to do, as in the log. UTF-8
   * without an end, on one line, at most 600 bytes, and without credentials or data. Length 0: the
   * call went well, or its return value says all. A NULL `text` asks for the length;
   * CKR_BUFFER_TOO_SMALL says that there is less room. It may be called at any time, also before
   * C_Initialize.
   */
  CK_RV (*last_cause)(CK_UTF8CHAR_PTR text, CK_ULONG_PTR length);
} DKE_FUNCTIONS;

#endif
