/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. The forms of a mechanism’s parameter, by number on the wire. */

#ifndef DKE_FORMS_H
#define DKE_FORMS_H

enum parameter_form {
  FORM_NONE = 0,
  FORM_BYTES = 1,
  FORM_ULONG = 2,
  FORM_CTR = 3,
  FORM_GCM = 4,
  FORM_PSS = 5,
  FORM_OAEP = 6,
  FORM_ECDH1 = 7,
  FORM_HKDF = 8,
  FORM_CCM = 9,
  FORM_EDDSA = 10,
  FORM_DATA = 11,
  FORM_IVDATA = 12,
  FORM_SP800 = 13,
};

#endif
