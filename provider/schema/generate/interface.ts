// module/message/gen/interface.h: what PKCS#11 3.0 and 3.2 added to the headers of 2.40.
import { stubs } from '../calls.ts';
import { CKF } from '../constants.ts';
import { declaration, declare, hex, opening, rows, stubParameters } from './rows.ts';

type Addition = readonly [name: string, signature: string];
/** What a version added, in the order of its list. */
const additions = (since: '3.0' | '3.2'): readonly Addition[] => [
  ...rows.filter(([, row]) => row.since === since).map(([name, row]) => [name, declare(name, row)] as const),
  ...Object.entries(stubs)
    .filter(([, stub]) => stub.since === since)
    .map(([name, { types }]) => [name, declaration(name, stubParameters(types))] as const),
];

const members = (all: readonly Addition[]): readonly string[] =>
  all.map(([name, signature]) => `  ${signature.replace(name, `(*${name})`)};`);

const listStruct = (name: string, all: readonly Addition[]): readonly string[] => [
  `typedef struct ${name} {`,
  '  CK_VERSION version;',
  '#define CK_PKCS11_FUNCTION_INFO(name) CK_##name name;',
  '#include <pkcs11f.h>',
  '#undef CK_PKCS11_FUNCTION_INFO',
  ...members(all),
  `} ${name};\n`,
];

const listMacro = (name: string, all: readonly Addition[]): string =>
  [`#define ${name}(DKE_FUNCTION) \\`, all.map(([each]) => `  DKE_FUNCTION(${each})`).join(' \\\n'), ''].join('\n');

export const interfaceHeader = (): string => {
  const [in30, in32] = [additions('3.0'), additions('3.2')];
  return [
    opening('What 3.0 and 3.2 added to pkcs11.h 2.40.'),
    '#ifndef DKE_INTERFACE_H',
    '#define DKE_INTERFACE_H\n',
    'typedef struct CK_INTERFACE {',
    '  CK_UTF8CHAR *pInterfaceName;',
    '  CK_VOID_PTR pFunctionList;',
    '  CK_FLAGS flags;',
    '} CK_INTERFACE;',
    'typedef CK_INTERFACE *CK_INTERFACE_PTR;',
    'typedef CK_INTERFACE_PTR *CK_INTERFACE_PTR_PTR;\n',
    'typedef CK_ULONG CK_SESSION_VALIDATION_FLAGS_TYPE;',
    'typedef struct CK_ASYNC_DATA {',
    '  CK_ULONG ulVersion;',
    '  CK_BYTE_PTR pValue;',
    '  CK_ULONG ulValue;',
    '  CK_OBJECT_HANDLE hObject;',
    '  CK_OBJECT_HANDLE hAdditionalObject;',
    '} CK_ASYNC_DATA;\n',
    'typedef CK_ULONG CK_GENERATOR_FUNCTION;',
    'typedef struct CK_GCM_MESSAGE_PARAMS {',
    '  CK_BYTE_PTR pIv;',
    '  CK_ULONG ulIvLen;',
    '  CK_ULONG ulIvFixedBits;',
    '  CK_GENERATOR_FUNCTION ivGenerator;',
    '  CK_BYTE_PTR pTag;',
    '  CK_ULONG ulTagBits;',
    '} CK_GCM_MESSAGE_PARAMS;',
    `#define CKF_END_OF_MESSAGE ${hex(CKF.END_OF_MESSAGE)}`,
    `#define CKF_MESSAGE_ENCRYPT ${hex(CKF.MESSAGE_ENCRYPT)}`,
    `#define CKF_MESSAGE_DECRYPT ${hex(CKF.MESSAGE_DECRYPT)}`,
    `#define CKF_FIND_OBJECTS ${hex(CKF.FIND_OBJECTS)}\n`,
    ...[...in30, ...in32].map(([, signature]) => `extern ${signature};`),
    '',
    ...listStruct('CK_FUNCTION_LIST_3_0', in30),
    ...listStruct('CK_FUNCTION_LIST_3_2', [...in30, ...in32]),
    listMacro('DKE_FUNCTIONS_3_0', in30),
    listMacro('DKE_FUNCTIONS_3_2', in32),
    '#endif',
    '',
  ].join('\n');
};
