// A worker thread that uses the core addon until it is stopped or terminated: it creates keys,
// leaves an operation and a parsed request body open, says what it has, and ciphers without end.
import { parentPort, workerData } from 'node:worker_threads';
import { core } from '../../addon/core.ts';

const { keys } = workerData as { readonly keys: number };
core.initialize({ allowUnlocked: true });

const refs = Array.from({ length: keys }, () => core.generateAes(256));
const [first = core.generateAes(256)] = refs;
core.generateEc('p256');
const parameters = { algorithm: 'aes-gcm', iv: Buffer.alloc(12), tagLength: 16 } as const;
const operation = core.cipherBegin(first, 'encrypt', parameters);
core.cipherUpdate(operation, Buffer.alloc(100), Buffer.alloc(100));
core.digestBegin('sha256');
const parsed = core.xksParse(
  'encrypt',
  Buffer.from(
    '{"requestMetadata":{"kmsRequestId":"","kmsOperation":"","awsPrincipalArn":"","kmsKeyArn":""},"plaintext":"AAAA","encryptionAlgorithm":"AES_GCM"}',
  ),
);
if (!parsed.ok) throw new Error(parsed.message);

parentPort?.postMessage({ keys: refs, operation });
const input = Buffer.alloc(4096, 1);
const output = Buffer.alloc(4112);
for (;;) core.cipher(first, 'encrypt', parameters, input, output);
