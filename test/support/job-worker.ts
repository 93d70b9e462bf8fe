// Starts jobs of every length, and is terminated while they run.
import { generateKeyPairSync } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { core } from '../../addon/core.ts';

core.initialize();
const pkcs8 = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'der' });
for (let each = 0; each < 4; each++) void core.generateRsaLater(4096);
for (let each = 0; each < 8; each++) void core.importPrivateKeyLater(pkcs8);
parentPort?.postMessage('started');
