// Reads that a transaction on PostgreSQL asks again are answered as the database would answer them,
// whatever was written between them.

import { expect, test } from 'vitest';
import { createReadOnce } from '../../../server/adapters/store/engine/postgres/read-once.ts';
import fc from '../../support/property.ts';

type Step = readonly [
  kind: 'read' | 'join' | 'insert' | 'upsert' | 'update' | 'delete' | 'other' | 'end',
  table: number,
];
const tables = ['vaults', 'keys', 'tde_objects'] as const;

test('a read that is not asked again has the answer that the database would give', () => {
  const step = fc.tuple(
    fc.constantFrom<Step[0]>(
      'read',
      'read',
      'read',
      'read',
      'join',
      'insert',
      'upsert',
      'update',
      'delete',
      'other',
      'end',
    ),
    fc.nat(tables.length - 1),
  );
  let known = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const reads = createReadOnce();
      // How often each table was written: what a read of it sees.
      const state = tables.map(() => 0);
      const write = (text: string, at: number): void => {
        state[at] = (state[at] ?? 0) + 1;
        reads.saw(text, [], { rows: [], rowCount: 1 } as never);
      };
      const read = (text: string, seen: readonly unknown[]): void => {
        const found = reads.find(text, [1]);
        if (found !== undefined) {
          known += 1;
          expect(found.rows).toEqual([{ seen: seen.join() }]);
          // Who gets it may change it.
          Object.assign(found.rows[0] as object, { seen: 'changed' });
        } else reads.saw(text, [1], { rows: [{ seen: seen.join() }], rowCount: 1 } as never);
      };
      for (const [kind, at] of steps) {
        const table = tables[at];
        const other = (at + 1) % tables.length;
        if (kind === 'read') read(`select * from "${table}" where "id" = $1`, [state[at]]);
        else if (kind === 'join')
          read(`select * from "${table}" inner join "${tables[other]}" on true where "id" = $1`, [
            state[at],
            state[other],
          ]);
        else if (kind === 'insert') write(`insert into "${table}" ("id") values ($1)`, at);
        else if (kind === 'upsert')
          write(`insert into ${table} (id) values ($1) on conflict (id) do update set id = $1`, at);
        else if (kind === 'update') write(`update "${table}" set "id" = $1`, at);
        else if (kind === 'delete') write(`with gone as (delete from "${table}" returning 1) select * from gone`, at);
        else if (kind === 'other') reads.saw('savepoint unit', [], { rows: [] } as never);
        else {
          // One unit of the commit is undone: the rows that it has written are as they were before
          // some point.
          for (let each = 0; each < state.length; each += 1) state[each] = (state[each] ?? 0) + 100;
          reads.saw('rollback to savepoint unit', [], { rows: [] } as never);
        }
      }
    }),
    { numRuns: 300 },
  );
  expect(known).toBeGreaterThan(100);
});

test('what may be another answer, or may be wiped, is asked each time', () => {
  const reads = createReadOnce();
  for (const [text, row] of [
    ['select nextval($1)', { n: 1 }],
    ['select now() as at from "keys"', { at: 1 }],
    ['select * from "another_table"', { id: 1 }],
    ['select * from "keys" for update', { id: 1 }],
    ['select "record" from "key_records"', { record: Buffer.alloc(1) }],
  ] as const) {
    reads.saw(text, [], { rows: [row], rowCount: 1 } as never);
    expect(reads.find(text, [])).toBeUndefined();
  }
});
