// The request log as a file: formulas that a spreadsheet must not run, special characters in CSV,
// and that it reads only as much as is consumed.
import { describe, expect, test, vi } from 'vitest';
import { csvCell } from '../../../server/base/csv.ts';
import { exportRequests } from '../../../server/fronts/api/export.ts';
import type { LoggedRequest, RequestPages } from '../../../server/operations/index.ts';

const record = (sequence: number, change: Partial<LoggedRequest> = {}): LoggedRequest => ({
  sequence,
  at: 0,
  requestId: 'r',
  endpointId: 'e',
  operation: 'encrypt',
  kmsOperation: 'Encrypt',
  kmsRequestId: 'k',
  principal: 'p',
  kmsKeyArn: 'a',
  awsSourceVpc: 'v',
  awsSourceVpce: null,
  kmsViaService: 's',
  externalKeyId: 'x',
  credentialId: null,
  status: 200,
  errorName: null,
  durationMs: 1.5,
  phases: { readMs: 0.5, authMs: 0.5, cryptoMs: 0.5 },
  reason: null,
  peer: null,
  ...change,
});

describe('a cell of CSV', () => {
  test.each([
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1+cmd|calc', "'-1+cmd|calc"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    [' =1', `' =1`],
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
  ])('%j is not a formula', (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  test.each([
    ['arn:aws:iam::111122223333:user/alice', 'arn:aws:iam::111122223333:user/alice'],
    ['a,b', '"a,b"'],
    ['say "x"', '"say ""x"""'],
    ['two\nlines', '"two\nlines"'],
    ['end ', '"end "'],
    [-1.5, '-1.5'],
    [null, ''],
  ])('%j is written so that it is read back', (value, cell) => {
    expect(csvCell(value)).toBe(cell);
  });
});

describe('an export', () => {
  test('has one line a record; CSV has a heading', async () => {
    async function* pages(): RequestPages {
      yield [record(2, { kmsOperation: '=cmd' }), record(1)];
    }
    const csv = (await new Response(exportRequests(pages(), 'csv').body).text()).split('\r\n');
    expect(csv[0]).toBe(
      'at,sequence,requestId,endpointId,operation,kmsOperation,kmsRequestId,principal,kmsKeyArn,externalKeyId,credentialId,status,errorName,durationMs,readMs,authMs,cryptoMs,reason,peer,awsSourceVpc,awsSourceVpce,kmsViaService',
    );
    expect(csv[1]).toBe("1970-01-01T00:00:00.000Z,2,r,e,encrypt,'=cmd,k,p,a,x,,200,,1.5,0.5,0.5,0.5,,,v,,s");
    expect(csv).toHaveLength(4);
    const lines = (await new Response(exportRequests(pages(), 'ndjson').body).text()).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as LoggedRequest).sequence)).toEqual([2, 1]);
  });

  test('reads a page when it is asked for one, and stops reading when it is not taken', async () => {
    let read = 0;
    let ended = false;
    async function* pages(): RequestPages {
      try {
        for (;;) yield [record(++read)];
      } finally {
        ended = true;
      }
    }
    const reader = exportRequests(pages(), 'ndjson').body.getReader();
    expect(read).toBe(0);
    await reader.read();
    await reader.read();
    expect(read).toBe(2);
    await reader.cancel();
    expect(ended).toBe(true);
    expect(read).toBe(2);
  });

  test('whose reader takes nothing is ended, and is no longer read', async () => {
    vi.useFakeTimers();
    try {
      let isClosed = false;
      async function* pages(): RequestPages {
        try {
          for (let at = 9; at > 0; at -= 1) yield [record(at)];
        } finally {
          isClosed = true;
        }
      }
      const file = exportRequests(pages(), 'ndjson');
      const ended = vi.fn();
      file.whenEnded(ended);
      const reader = file.body.getReader();
      expect((await reader.read()).done).toBe(false);
      await vi.advanceTimersByTimeAsync(3_600_000);
      await expect(reader.read()).rejects.toThrow('takes nothing');
      expect([ended.mock.calls.length, isClosed]).toEqual([1, true]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('whose reader takes a page a minute loses its place, and one that takes a page a second does not', async () => {
    vi.useFakeTimers();
    try {
      async function* pages(): RequestPages {
        for (;;) yield Array.from({ length: 100 }, (_, at) => record(at));
      }
      const readEvery = async (ms: number): Promise<number> => {
        const reader = exportRequests(pages(), 'ndjson').body.getReader();
        try {
          for (let read = 0; read < 1_000; read += 1) {
            await reader.read();
            await vi.advanceTimersByTimeAsync(ms);
          }
          return 1_000;
        } catch {
          return 0;
        } finally {
          await reader.cancel().catch(() => undefined);
        }
      };
      expect([await readEvery(59_000), await readEvery(1_000)]).toEqual([0, 1_000]);
    } finally {
      vi.useRealTimers();
    }
  });
});
