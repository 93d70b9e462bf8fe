// A separate thread for one use of a recovery key: it reads the file, and its memory with all
// secrets ends with it.

import { answerOpening, type Opening } from './recovery-key.ts';

export interface Asked {
  readonly file: Blob;
  /** Transferred: the page no longer has it. */
  readonly passphrase: Uint8Array<ArrayBuffer>;
  readonly opening: Opening;
}
export type Answered = { readonly sealedKey: string } | { readonly fault: string };

const answer = async ({ file, passphrase, opening }: Asked): Promise<Answered> => {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    return { sealedKey: await answerOpening(bytes, passphrase, opening) };
  } catch (error) {
    return { fault: error instanceof Error ? error.message : 'The recovery key cannot be used.' };
  } finally {
    bytes.fill(0);
    passphrase.fill(0);
  }
};

self.addEventListener('message', ({ data }: MessageEvent<Asked>) => {
  void answer(data).then((answered) => self.postMessage(answered));
});
