// Key and vault: metadata, encrypt and decrypt as the cloud key service does them, integrity value
// included.

import { createHash, randomBytes } from 'node:crypto';
import { parseBase64, toBase64 } from '../../../base/bytes.ts';
import { type Finding, notAsked, ok } from '../../../base/diagnostic-checks.ts';
import { complaintOfMetadata } from '../../../base/xks-answers.ts';
import { causeOfAnswer, type EndpointCheck, type EndpointContext, foretold, wantsCertificate } from '../context.ts';
import { diagnosticMetadata, type ProbeAnswer, type View } from '../probe.ts';

const refused = (answer: ProbeAnswer, what: string, operation: string): Finding => {
  const { status, members } = answer;
  const name = String(members?.errorName ?? 'without errorName');
  if (name === 'AccessDeniedException')
    return notAsked(`a rule of the endpoint denies the diagnostics' ${what}; it may allow the cloud's`);
  if (name === 'ThrottlingException') return notAsked('the rate limit of the endpoint is reached');
  return foretold(causeOfAnswer(answer, operation), `${what} answers ${status} ${name}`);
};

const bytesOf = (answer: ProbeAnswer, name: string): Buffer => {
  const value = answer.members?.[name];
  const bytes = typeof value === 'string' ? parseBase64(value) : null;
  if (bytes === null) throw new Error(`${name} of the answer is not Base64`);
  return bytes;
};

const travel = async (context: EndpointContext, view: View): Promise<Finding> => {
  const { prober, endpoint } = context;
  const [credential] = context.credentials;
  if (credential === undefined || wantsCertificate(context))
    return notAsked('the endpoint has no credential, or requires a client certificate');
  const post = (operation: string, body: object): Promise<ProbeAnswer> =>
    prober.post(
      view,
      `/keys/${endpoint.keyId}/${operation}`,
      { requestMetadata: diagnosticMetadata(), ...body },
      credential,
    );
  const metadata = await post('metadata', {});
  if (metadata.status !== 200) return refused(metadata, 'GetKeyMetadata', '/keys/id/metadata');
  const wrong = complaintOfMetadata(metadata.members);
  if (wrong !== undefined) return foretold('answers-changed', `the answer to GetKeyMetadata is malformed: ${wrong}`);
  const plaintext = randomBytes(32);
  const aad = randomBytes(16);
  const common = { encryptionAlgorithm: 'AES_GCM', additionalAuthenticatedData: toBase64(aad) };
  const sealed = await post('encrypt', {
    ...common,
    plaintext: toBase64(plaintext),
    ciphertextDataIntegrityValueAlgorithm: 'SHA_256',
  });
  if (sealed.status !== 200) return refused(sealed, 'Encrypt', '/keys/id/encrypt');
  const [iv, tag, ciphertext] = [
    bytesOf(sealed, 'initializationVector'),
    bytesOf(sealed, 'authenticationTag'),
    bytesOf(sealed, 'ciphertext'),
  ];
  const ciphertextMetadata =
    sealed.members?.ciphertextMetadata === undefined ? Buffer.alloc(0) : bytesOf(sealed, 'ciphertextMetadata');
  const expected = createHash('sha256')
    .update(Buffer.concat([aad, ciphertextMetadata, iv, ciphertext, tag]))
    .digest();
  if (!bytesOf(sealed, 'ciphertextDataIntegrityValue').equals(expected))
    return foretold('answers-changed', 'the integrity value of the ciphertext is wrong');
  const { initializationVector, authenticationTag, ciphertext: text, ciphertextMetadata: meta } = sealed.members ?? {};
  const opened = await post('decrypt', {
    ...common,
    initializationVector,
    authenticationTag,
    ciphertext: text,
    ...(meta === undefined ? {} : { ciphertextMetadata: meta }),
  });
  if (opened.status !== 200) return refused(opened, 'Decrypt', '/keys/id/decrypt');
  if (!bytesOf(opened, 'plaintext').equals(plaintext))
    return foretold('answers-changed', 'the decrypted text differs from the encrypted one');
  const durations = [metadata, sealed, opened].map(({ durationMs }) => durationMs);
  if (view === 'public') context.latencies = durations;
  return ok(`metadata, encrypt, decrypt: ${durations.map((ms) => `${ms.toFixed(0)} ms`).join(', ')}`);
};

export const roundTrip = (view: View): EndpointCheck => ({
  id: `round-trip-${view}`,
  layer: 'key',
  title: view === 'node' ? 'a round trip at this node' : 'a round trip through the public name',
  fault: view === 'node' ? 'a round trip fails at this node' : 'a round trip fails through the public name',
  needs: ['key-kind', 'key-enabled', `health-status-${view}`],
  run: (context) => travel(context, view),
});
