// What is thrown where an answer would be, when nothing was done yet and nothing is wrong: the
// operation waits, and `request` says for what.

export class Waiting<T> extends Error {
  override readonly name = 'Waiting';
  readonly request: T;

  constructor(request: T) {
    super('the operation waits');
    this.request = request;
  }
}
