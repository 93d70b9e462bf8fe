// Which rows of the API's contract the `dke` command calls, read from its sources: every call of
// the typed client (`call`, `bytes`, `stream`, `upload`; `change`, of two rows) names its row as
// `operations.<group>.<name>`, directly or by constants. What a constant may be is worked out, not
// run: an index by a variable of a loop over literals is each of them, an index that is not known
// is every member.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'vite';
import { files } from './sources.ts';

interface Node {
  readonly type: string;
  readonly [member: string]: unknown;
}

/**
 * What an expression may be: a place in the contract, a text, or an expression that was written
 * down.
 */
type Value =
  | { readonly is: 'place'; readonly names: readonly string[] }
  | { readonly is: 'text'; readonly text: string }
  | { readonly is: 'node'; readonly node: Node; readonly scope: Scope };
type Scope = ReadonlyMap<string, readonly Value[]>;

export interface ApiUse {
  readonly file: string;
  readonly line: number;
  /** `group.name`; empty when the call does not say it in a way that can be followed. */
  readonly rows: readonly string[];
}

/** Methods of the client, and how many of their first arguments are rows. */
const clientMethods = new Map([
  ['call', 1],
  ['bytes', 1],
  ['stream', 1],
  ['upload', 1],
  ['change', 2],
  ['row', 1],
]);
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;
const asNode = (value: unknown): Node => {
  if (isNode(value)) return value;
  throw new TypeError('not a syntax node');
};
const children = (node: Node): readonly Node[] => Object.values(node).flat().filter(isNode);
const listOf = (value: unknown): readonly Node[] => (Array.isArray(value) ? value.filter(isNode) : []);
const wrappers = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'ParenthesizedExpression', 'ChainExpression']);
const nameOf = (node: Node): string | undefined =>
  node.type === 'Identifier'
    ? String(node.name)
    : node.type === 'Literal' && typeof node.value === 'string'
      ? node.value
      : undefined;

const member = (value: Value, names: readonly string[] | 'any'): readonly Value[] => {
  if (value.is === 'text') return [];
  if (value.is === 'place')
    return names === 'any' ? [] : names.map((name) => ({ is: 'place', names: [...value.names, name] }));
  const { node, scope } = value;
  if (node.type !== 'ObjectExpression') return [];
  return listOf(node.properties)
    .filter((property) => names === 'any' || names.includes(nameOf(asNode(property.key)) ?? ''))
    .flatMap((property) => evaluate(asNode(property.value), scope));
};

const evaluate = (node: Node, scope: Scope): readonly Value[] => {
  if (wrappers.has(node.type)) return evaluate(asNode(node.expression), scope);
  if (node.type === 'Identifier') return scope.get(String(node.name)) ?? [];
  if (node.type === 'ConditionalExpression')
    return [node.consequent, node.alternate].flatMap((each) => evaluate(asNode(each), scope));
  if (node.type === 'Literal' && typeof node.value === 'string') return [{ is: 'text', text: node.value }];
  if (node.type === 'MemberExpression') {
    const property = asNode(node.property);
    const texts =
      node.computed === true
        ? evaluate(property, scope).flatMap((value) => (value.is === 'text' ? [value.text] : []))
        : [nameOf(property) ?? ''];
    const names = texts.length === 0 ? 'any' : texts;
    return evaluate(asNode(node.object), scope).flatMap((value) => member(value, names));
  }
  return [{ is: 'node', node, scope }];
};

const elements = (values: readonly Value[]): readonly (readonly Value[])[] =>
  values.flatMap((value) =>
    value.is === 'node' && value.node.type === 'ArrayExpression'
      ? listOf(value.node.elements).map((element) => evaluate(element, value.scope))
      : [],
  );

/** Adds the names that a pattern gives to parts of these values. */
const bind = (pattern: Node, values: readonly Value[], into: Map<string, readonly Value[]>): void => {
  if (pattern.type === 'Identifier') into.set(String(pattern.name), values);
  if (pattern.type === 'ObjectPattern')
    for (const property of listOf(pattern.properties).filter(({ type }) => type === 'Property')) {
      const name = nameOf(asNode(property.key)) ?? '';
      bind(
        asNode(property.value),
        values.flatMap((value) => member(value, [name])),
        into,
      );
    }
  if (pattern.type === 'ArrayPattern')
    for (const [index, part] of (pattern.elements as readonly unknown[]).entries())
      if (isNode(part))
        bind(
          part,
          values.flatMap((value) => elements([value])[index] ?? []),
          into,
        );
};

const collect = (node: Node, outer: Scope, found: (call: Node, rows: readonly string[]) => void): void => {
  const scope = new Map(outer);
  const declare = (declaration: Node, values: (init: Node) => readonly Value[]): void => {
    for (const { id, init } of listOf(declaration.declarations))
      if (isNode(init)) bind(asNode(id), values(init), scope);
  };
  if (node.type === 'ForOfStatement') {
    const left = asNode(node.left);
    const values = elements(evaluate(asNode(node.right), outer)).flat();
    for (const { id } of listOf(left.declarations)) bind(asNode(id), values, scope);
  }
  for (const statement of listOf(node.body)) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (isNode(declaration) && declaration.type === 'VariableDeclaration')
      declare(declaration, (init) => evaluate(init, scope));
  }
  if (node.type === 'CallExpression') {
    const callee = asNode(node.callee);
    const name = nameOf(callee.type === 'MemberExpression' ? asNode(callee.property) : callee);
    const rows = listOf(node.arguments).slice(0, clientMethods.get(name ?? '') ?? 0);
    const receiver = callee.type === 'MemberExpression' ? asNode(callee.object) : undefined;
    const receiverName =
      receiver === undefined
        ? undefined
        : nameOf(receiver.type === 'MemberExpression' ? asNode(receiver.property) : receiver);
    // Outputs take bytes too.
    if (rows.length > 0 && receiverName !== 'output')
      found(
        node,
        rows
          .flatMap((row) => evaluate(row, scope))
          .flatMap((value) => (value.is === 'place' && value.names.length === 2 ? [value.names.join('.')] : [])),
      );
  }
  for (const child of children(node)) collect(child, scope, found);
};

/** The calls in one source text. */
export const apiUses = (file: string, text: string): readonly ApiUse[] => {
  const uses: ApiUse[] = [];
  const scope: Scope = new Map([['operations', [{ is: 'place', names: [] }]]]);
  collect(parseSync(file, text).program as unknown as Node, scope, (call, rows) => {
    const line = text.slice(0, Number(call.start)).split('\n').length;
    uses.push({ file, line, rows });
  });
  return uses;
};

/** Every call in the sources of the command, but for the client's own. */
export const commandUses = (): readonly ApiUse[] =>
  files(['server'], '.ts')
    .filter(
      (path) =>
        path.startsWith('server/cli/') &&
        !['server/cli/service/api-client.ts', 'server/cli/service/command-rows.ts'].includes(path),
    )
    .flatMap((path) => apiUses(path, readFileSync(join(import.meta.dirname, '../..', path), 'utf8')));
