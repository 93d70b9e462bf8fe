// The manifests for Kubernetes, and a kubectl that enters containers of the tests: `exec` runs the
// program pods/NAME, `create secret generic` writes the files of secrets/NAME. No cluster.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { image } from '../../provider/packaging/image.ts';
import { shellWord } from '../../server/base/command-line.ts';

const packaging = resolve(import.meta.dirname, '../../server/packaging');

export interface PodContainer {
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: true }[];
}
export interface Pod {
  readonly hostAliases: readonly { readonly ip: string; readonly hostnames: readonly string[] }[];
  readonly initContainers: readonly [PodContainer];
  readonly containers: readonly [PodContainer];
  readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[];
}

const manifest = (name: string): unknown =>
  parse(readFileSync(join(packaging, 'kubernetes', name), 'utf8'), { merge: true });

/** The pod of the StatefulSet, and the dke.toml of the ConfigMap. */
export const readManifests = (): { readonly pod: Pod; readonly toml: string } => {
  const set = manifest('statefulset.yaml') as { readonly spec: { readonly template: { readonly spec: Pod } } };
  const map = manifest('configmap.yaml') as { readonly data: { readonly 'dke.toml': string } };
  return { pod: set.spec.template.spec, toml: map.data['dke.toml'] };
};

/** What the page's reader has in the folder: kubectl in `bin`, the manifests, and these files. */
export const layCluster = (place: string, files: Readonly<Record<string, string | Buffer>>): void => {
  for (const each of ['configuration', 'secrets', 'pods', 'bin']) mkdirSync(join(place, each));
  symlinkSync(resolve(packaging, '..'), join(place, 'server'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(place, name), content);
  const at = shellWord(place);
  writeFileSync(
    join(place, 'bin/kubectl'),
    `#!/bin/sh
set -eu
action=$1; shift
case $action in
  exec) [ "$1" != --stdin ] || shift; pod=$1; [ "$2" = -- ]; shift 2; exec ${at}/pods/"$pod" "$@" ;;
  create)
    [ "$1 $2" = 'secret generic' ]; secret=${at}/secrets/$3; shift 3; install -d "$secret"
    while [ $# -gt 0 ]; do
      [ "$1" = --from-file ]; from=\${2#*=}; to=\${2%%=*}
      install -o root -g ${image.user} -m 440 "$from" "$secret/$to"; shift 2
    done ;;
  apply) [ "$1" = --filename ]; ls "$2"/statefulset.yaml > /dev/null ;;
  *) echo "kubectl of the tests knows no $action" >&2; exit 2 ;;
esac
`,
    { mode: 0o755 },
  );
};

/** `kubectl exec NAME` runs these words with a command behind them. */
export const layPod = (place: string, name: string, words: readonly string[]): void =>
  writeFileSync(join(place, 'pods', name), `#!/bin/sh\nexec ${words.map(shellWord).join(' ')} "$@"\n`, { mode: 0o755 });
