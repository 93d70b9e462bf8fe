// `dke doctor`: runs the diagnostics of a database host, of the service's host, or of both, and
// shows the first failing layer first. The database host's checks belong to the agent's program,
// which is found by its place in the installation.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import type { Command } from 'commander';
import { findConfig } from '../../app/config/config.ts';
import { exceptionOf, tellReports, wordsOf } from '../../base/cloud-causes.ts';
import type { CheckedPart, CheckResult } from '../../base/diagnostic-checks.ts';
import { printable } from '../../base/printable.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { DiagnosisEvent } from '../../contract/api/diagnostics-routes.ts';
import { openCaller } from '../service/caller.ts';
import { nounOf } from '../service/command-rows.ts';
import { globalsOf } from '../service/context-file.ts';
import { CommandError, notOurs } from '../terminal/exit-codes.ts';
import { formatTable, type OutputFormat, paintOut, standardOutput } from '../terminal/output.ts';
import { clearProgress } from '../terminal/progress.ts';
import { become, ownerOf, userOf } from './acting-user.ts';
import { loadProvider } from './load-provider.ts';

interface DoctorOptions {
  readonly conf?: string;
  readonly label?: string;
  readonly library?: string;
  readonly socket?: string;
  readonly config?: string;
  readonly output: OutputFormat;
}

const defaultConf = '/etc/dke/pkcs11.toml';
const marks = { ok: 'ok', warning: 'warning', failed: 'FAILED', skipped: 'skipped' } as const;

interface ProviderDiagnosis {
  readonly diagnose: (options: object) => Promise<readonly CheckResult[]>;
}

const databaseHost = async (
  { diagnose }: ProviderDiagnosis,
  conf: string,
  { label, library, socket }: DoctorOptions,
): Promise<CheckedPart> => {
  return {
    what: 'this database host',
    whoSays: 'the database prints',
    results: await diagnose({
      configPath: resolve(conf),
      label,
      library: library === undefined ? undefined : resolve(library),
      socket,
    }),
  };
};

/** Evidence has texts of services, certificates and callers. */
const printed = (result: CheckResult): CheckResult => ({
  ...result,
  evidence: printable(result.evidence, '\n'),
  ...(result.fix === undefined ? {} : { fix: printable(result.fix, '\n') }),
});

export const show = ({ what, results: found, whoSays = 'the cloud key service reports' }: CheckedPart): string => {
  const results = found.map(printed);
  // A warning that foretells what someone else will report may be the cause that is looked for.
  const first =
    results.find(({ state }) => state === 'failed') ??
    results.find(({ state, predicts }) => state === 'warning' && predicts !== undefined);
  const verb = first?.state === 'failed' ? 'fails' : 'may fail';
  const summary =
    first === undefined ? `${what} passed all checks` : `${what}: ${first.layer} ${verb}: ${first.evidence}`;
  const rows = results.map(({ state, layer, title, evidence, fix }) => [
    marks[state],
    layer,
    title,
    fix === undefined ? evidence : `${evidence}; ${fix}`,
  ]);
  const advice = first?.fix === undefined ? '' : `  ${first.fix}\n`;
  const words = first?.reports === undefined ? '' : ` (${tellReports(first.reports)})`;
  const foretold = first?.predicts === undefined ? '' : `  ${whoSays} ${first.predicts}${words}\n`;
  const lines = formatTable(rows).split('\n');
  const painted = lines.map((line, at) => {
    const state = results[at]?.state;
    return state === 'failed' ? paintOut('red', line) : state === 'warning' ? paintOut('yellow', line) : line;
  });
  return `${summary}\n${advice}${foretold}\n${painted.join('\n')}\n`;
};

/** Shows what was found, and ends with an error when something failed. */
export const conclude = (diagnoses: readonly CheckedPart[], format: OutputFormat): void => {
  const output = standardOutput(format);
  if (format === 'csv')
    output.list(
      { items: diagnoses.flatMap(({ what, results }) => results.map((each) => ({ ...each, what }))) },
      { OF: 'what', STATE: 'state', LAYER: 'layer', CHECK: 'title', FOUND: 'evidence', FIX: 'fix' },
    );
  else if (output.raw) output.record(diagnoses);
  else output.bytes(Buffer.from(diagnoses.map(show).join('\n')));
  const failures = diagnoses.flatMap(({ results }) => results).filter(({ state }) => state === 'failed').length;
  if (failures > 0) throw new CommandError('checks-failed', `${failures} of the checks failed`);
};

interface CloudOptions {
  readonly cloudUriEndpoint?: string;
  readonly cloudUriPath?: string;
  readonly cloudAccessKeyId?: string;
  readonly cloudKeyId?: string;
  readonly follow?: true;
}

/** A service that cannot be reached is the first thing that the cloud meets too. */
const unreachable = ({ message, hint }: CommandError): CheckResult => ({
  id: 'service-answers',
  layer: 'network',
  title: 'the service answers',
  state: 'failed',
  evidence: message,
  fix: hint ?? 'start the service',
  predicts: exceptionOf('no-connection'),
  reports: wordsOf('no-connection'),
  durationMs: 0,
});

/** One line for people, as soon as it is known. */
const showEvent = (event: DiagnosisEvent): void => {
  if (event.kind !== 'ended') return;
  const { state, layer, title, evidence } = printed(event.result);
  clearProgress();
  process.stderr.write(`${marks[state].padEnd(8)}${layer.padEnd(11)}${title}: ${evidence}\n`);
};

/** Undefined: what is there is no event of a run. */
const eventOf = (line: string): DiagnosisEvent | undefined => {
  try {
    const event = JSON.parse(line) as DiagnosisEvent | null;
    return event === null || typeof event !== 'object' ? undefined : event;
  } catch {
    return undefined;
  }
};

/** Takes the lines of a run as they come; `kept` tells what the run found. */
const readLines = (tell: (event: DiagnosisEvent) => void): Writable & { kept(): readonly CheckResult[] } => {
  let rest = '';
  let kept: readonly CheckResult[] | undefined;
  let stopped = 'the answer of the service was incomplete';
  const decoder = new StringDecoder('utf8');
  const lines = new Writable({
    write: (chunk: Buffer, _, done) => {
      const [last = '', ...complete] = (rest + decoder.write(chunk)).split('\n').reverse();
      rest = last;
      for (const line of complete.reverse()) {
        const event = eventOf(line);
        if (event === undefined) return done(notOurs());
        if (event.kind === 'kept') kept = event.diagnosis.results;
        if (event.kind === 'stopped') stopped = event.detail;
        tell(event);
      }
      return done();
    },
  });
  return Object.assign(lines, {
    kept: () => {
      if (kept === undefined) throw new CommandError('unreachable', stopped, { hint: 'run it again' });
      return kept;
    },
  });
};

const addEndpointDoctor = (doctor: Command): void => {
  doctor
    .command('endpoint <endpoint>')
    .description(
      'Checks every layer between the cloud key service and the key of an endpoint, from the service’s own node and through ' +
        'its public name. Start with the first check that failed.',
    )
    .option('--cloud-uri-endpoint <url>', 'XksProxyUriEndpoint that the cloud is configured with')
    .option('--cloud-uri-path <path>', 'XksProxyUriPath that the cloud is configured with')
    .option('--cloud-access-key-id <id>', 'AccessKeyId that the cloud signs with')
    .option('--cloud-key-id <id>', 'XksKeyId of the KMS key')
    .option('--follow', 'show each check on standard error when it is done')
    .action(async (name: string, options: CloudOptions, command: Command) => {
      const globals = globalsOf(command);
      const cloud = {
        uriEndpoint: options.cloudUriEndpoint,
        uriPath: options.cloudUriPath,
        accessKeyId: options.cloudAccessKeyId,
        externalKeyId: options.cloudKeyId,
      };
      let results: readonly CheckResult[];
      try {
        const { call, stream, resolve: find } = openCaller(globals);
        const path = { id: await find('endpoint', name) };
        const body = { callerTime: new Date().toISOString(), cloud };
        if (options.follow === true) {
          const lines = readLines(showEvent);
          await stream(operations.diagnostics.follow, { path, body }, lines);
          results = lines.kept();
        } else ({ results } = await call(operations.diagnostics.run, { path, body }));
      } catch (error) {
        if (!(error instanceof CommandError) || error.exitClass !== 'unreachable') throw error;
        results = [unreachable(error)];
      }
      conclude([{ what: `the endpoint ${name}`, results }], globals.output);
    });
};

/** Earlier runs, which the service keeps. */
const addEarlier = (doctor: Command): void => {
  const noun = nounOf(doctor);
  const { list, get } = operations.diagnostics;
  noun.row(list, 'runs <endpoint>', 'Lists earlier checks of an endpoint, newest first; kept for 90 days.', {
    columns: {
      ID: 'id',
      AT: 'at',
      FAILED: ({ results }) => results.filter(({ state }) => state === 'failed').length,
      WARNINGS: ({ results }) => results.filter(({ state }) => state === 'warning').length,
      'BEGIN WITH': ({ results }) => results.find(({ state }) => state === 'failed')?.title,
    },
  });
  noun.row(get, 'run <endpoint> <run-id>', 'Shows one earlier check.', {
    text: (output, { at, results }) => output.bytes(Buffer.from(show({ what: `the endpoint at ${at}`, results }))),
  });
};

/** One part, checked by a process of its own, which can become another user. */
export const checkApart = (
  part: readonly string[],
  options: Pick<DoctorOptions, 'label' | 'library' | 'socket'> = {},
): readonly CheckedPart[] => {
  const more = Object.entries({ label: options.label, library: options.library, socket: options.socket });
  const given =
    part[0] === '--conf' ? more.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])) : [];
  const program = process.argv[1] ?? '';
  const { stdout, stderr } = spawnSync(process.execPath, [program, 'doctor', ...part, ...given, '-o', 'json'], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    // Its longest checks wait for other hosts; a file system that hangs is not waited for.
    timeout: 300_000,
  });
  try {
    return JSON.parse(stdout) as readonly CheckedPart[];
  } catch {
    throw new CommandError('checks-failed', `dke doctor ${part.join(' ')} did not answer: ${stderr.trim()}`);
  }
};

export const addDoctor = (program: Command): void => {
  const doctor = program
    .command('doctor')
    .description(
      'Checks configuration, files, socket, the connection to the service and a key. Run it as the OS user of the database (or of ' +
        'the service), or as root, which then runs the checks as this user. Changes nothing.',
    )
    .option('--conf <file>', `pkcs11.toml of a database; default: DKE_PKCS11_CONF, or ${defaultConf} if it exists`)
    .option('--label <label>', 'label of a key that must be found')
    .option('--library <file>', 'the installed libdke_pkcs11.so')
    .option('--socket <path>', 'socket of the agent, if the library does not find it automatically')
    .option('--config <file>', `dke.toml of the service; default: ./dke.toml, or /etc/dke/dke.toml, if it exists`)
    .action(async (_: object, command: Command) => {
      const options = command.optsWithGlobals<DoctorOptions>();
      // What is named is what is checked.
      const isNamed = options.conf !== undefined || options.config !== undefined;
      const usual = existsSync(defaultConf) ? defaultConf : undefined;
      const conf = options.conf ?? (isNamed ? undefined : (process.env.DKE_PKCS11_CONF ?? usual));
      const config = options.config ?? (isNamed ? undefined : findConfig(process.cwd()));
      if (conf === undefined && config === undefined)
        throw new CommandError('config', 'no configuration was found to check', {
          hint: 'pass --conf pkcs11.toml on a database host, or --config dke.toml on the host of the service',
        });
      if (
        conf !== undefined &&
        config !== undefined &&
        process.getuid?.() === 0 &&
        ownerOf(conf).uid !== userOf(config).uid
      ) {
        const parts = [checkApart(['--conf', conf], options), checkApart(['--config', config], options)];
        conclude(parts.flat(), options.output);
        return;
      }
      // Loaded by the user who runs the command: the owner of the files may have no access to the
      // programs.
      const provider = conf === undefined ? undefined : await loadProvider<ProviderDiagnosis>('agent/threads/diagnose');
      const host = config === undefined ? undefined : await import('../../app/host/host-checks.ts');
      if (config !== undefined) host?.surveyFolders(resolve(config), process.cwd());
      if (conf !== undefined) become(ownerOf(conf));
      else if (config !== undefined) become(userOf(config));
      const diagnoses: CheckedPart[] = [];
      if (conf !== undefined && provider !== undefined) diagnoses.push(await databaseHost(provider, conf, options));
      if (config !== undefined && host !== undefined)
        diagnoses.push({
          what: 'the host of the service',
          whoSays: 'people and clients see',
          results: await host.diagnoseHost({ configPath: resolve(config), workingDirectory: process.cwd() }),
        });
      conclude(diagnoses, options.output);
    });
  addEndpointDoctor(doctor);
  addEarlier(doctor);
};
