// Reads the members of a call. What is missing or malformed is a ValidationException that names the
// member.

import { parseBase64 } from '../../base/bytes.ts';
import { KmsException } from './exceptions.ts';

export type Input = Readonly<Record<string, unknown>>;

export const invalid = (message: string): KmsException => new KmsException('ValidationException', message);

export const optionalText = (input: Input, name: string, shape = /^[\s\S]{0,8192}$/): string | undefined => {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string' || !shape.test(value)) throw invalid(`${name} is malformed`);
  return value;
};

export const text = (input: Input, name: string, shape?: RegExp): string => {
  const value = optionalText(input, name, shape);
  if (value === undefined) throw invalid(`${name} is missing`);
  return value;
};

/** One of these values, or absent. */
export const oneOf = (input: Input, name: string, values: readonly string[]): string | undefined => {
  const value = optionalText(input, name);
  if (value !== undefined && !values.includes(value)) throw invalid(`${name} can be ${values.join(', ')} here`);
  return value;
};

export const member = (input: Input, name: string): Input | undefined => {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid(`${name} must be an object`);
  return value as Input;
};

export const bytes = (input: Input, name: string, most: number): Buffer => {
  const value = parseBase64(text(input, name));
  if (value === null || value.length === 0 || value.length > most)
    throw invalid(`${name} must be Base64 of 1 to ${most} bytes`);
  return value;
};

/** Names and values of an encryption context; empty when absent. */
export const encryptionContext = (input: Input, name: string): Readonly<Record<string, string>> => {
  const pairs = member(input, name) ?? {};
  for (const value of Object.values(pairs))
    if (typeof value !== 'string') throw invalid(`${name} must contain only strings`);
  return pairs as Readonly<Record<string, string>>;
};
