// Why the provider cannot be installed, checked or removed: the class is one of the `dke` command's
// (its exit code), the message one line that says what is wrong, the hint one that says what to do.

export type InstallErrorClass = 'internal' | 'config' | 'permission' | 'not-found' | 'refused';

export class InstallError extends Error {
  override readonly name = 'InstallError';
  readonly class: InstallErrorClass;
  readonly hint: string | undefined;
  constructor(errorClass: InstallErrorClass, message: string, hint?: string) {
    super(message);
    this.class = errorClass;
    this.hint = hint;
  }
}

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;
