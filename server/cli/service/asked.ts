// Which service this command has asked, and the last answers of it that were read: what fails in
// the program after that may be because of an answer, of an older or newer service or of something
// in between (answer-fault.ts).

import type { Operation } from '../../clients/typescript/operation.ts';

export interface ReadAnswer {
  readonly operation: Operation;
  readonly body: unknown;
}

let asked: string | undefined;
let answers: readonly ReadAnswer[] = [];
export const rememberAsked = (url: string | undefined): void => {
  asked = url;
  if (url === undefined) answers = [];
};
export const askedService = (): string | undefined => asked;

const mostAnswers = 16;
/** Answers with a secret are read by caller.ts, which says itself what is wrong with them. */
export const rememberAnswer = (operation: Operation, body: unknown): void => {
  if (operation.showsOnce === undefined) answers = [...answers.slice(1 - mostAnswers), { operation, body }];
};
export const readAnswers = (): readonly ReadAnswer[] => answers;
