// For each claim of docs/threat-model.md (the row of a section that begins with these words):
// one-line changes of the code that enforces it, and the test that must fail with each.
// `npm run mutate` tries them (mutate.ts); test/house/claims.test.ts compares the lists.

export interface Mutant {
  /** Section and beginning of the row. */
  readonly claim: string;
  readonly file: string;
  /** Text that is in the file once. */
  readonly line: string;
  readonly becomes: string;
  /** Below test/, without its ending; native tests with theirs. */
  readonly test: string;
}
type Change = Omit<Mutant, 'claim'>;
type Claims = Readonly<Record<string, Readonly<Record<string, readonly Change[]>>>>;

const change = (file: string, line: string, becomes: string, test: string): Change => ({ file, line, becomes, test });

export const claims: Claims = {
  'Outsider on the network': {
    'Abort uploads over HTTP/2': [
      change(
        'server/fronts/listener/http2.ts',
        "session.once('close', () => connection.destroy());",
        '',
        'scenario/listener',
      ),
      change(
        'server/fronts/listener/http2.ts',
        'let [bytes, movedAt] = [0, performance.now()];',
        'session.setTimeout(silentMs); let [bytes, movedAt] = [0, performance.now()];',
        'unit/listener/connections',
      ),
    ],
    'Let the disk of a sink': [
      change(
        'server/app/open/disks.ts',
        'if (isHanging) return refuse(',
        'if (isClosed && isHanging) return refuse(',
        'scenario/foreign-disks',
      ),
    ],
    "Put a symbolic link in the place of a sink's file": [
      change(
        'server/adapters/sinks/file.ts',
        'O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600',
        'O_RDWR | O_APPEND | O_CREAT, 0o600',
        'scenario/audit-sinks',
      ),
    ],
    'Own a folder above one that `dke.toml` names': [
      change('server/app/host/root-way.ts', 'if (above.uid !== 0)', 'if (above.uid < 0)', 'unit/config/root-way'),
    ],
    'Open thousands of connections': [
      change(
        'server/fronts/listener/raw-connections.ts',
        'address: Math.max(fewest, Math.ceil(most / 8)),',
        'address: most,',
        'unit/listener/connections',
      ),
      change(
        'server/fronts/listener/raw-connections.ts',
        'network: Math.max(fewest, Math.ceil(most / 4)),',
        'network: most,',
        'unit/listener/connections',
      ),
      change(
        'server/fronts/listener/raw-connections.ts',
        'strangers: Math.ceil((most * 3) / 4),',
        'strangers: most,',
        'unit/listener/connections',
      ),
      change(
        'server/fronts/listener/raw-connections.ts',
        'if (taken - each.unread.taken < leastTaken) return true;',
        'if (taken - each.unread.taken < leastTaken) return false;',
        'unit/listener/connections',
      ),
    ],
    'Open connections and send any bytes': [
      change(
        'server/fronts/shared/read-body.ts',
        'if (size <= most) return;',
        'if (size > 0) return;',
        'scenario/bad-input-requests',
      ),
    ],
    'Send bodies that cannot be parsed': [
      change('server/base/json-members.ts', 'if (depth > most) return true;', '', 'unit/api/validate'),
    ],
    'Guess passwords and one-time codes': [
      change(
        'server/base/origins.ts',
        "['address', prefixOf(address, 4)],",
        "['address', prefixOf(address, 8)],",
        'unit/operations/people',
      ),
      change('server/base/origins.ts', 'prefixOf(address, 3)', 'prefixOf(address, 4)', 'unit/operations/people'),
      change(
        'server/operations/people/lockout.ts',
        'if (before?.lockedUntil != null && before.lockedUntil > now)',
        "if (kind !== 'user' && before?.lockedUntil != null && before.lockedUntil > now)",
        'unit/operations/people',
      ),
      change(
        'server/operations/people/lockout.ts',
        'if (before?.lockedUntil != null && before.lockedUntil > now)',
        "if (kind === 'user' && before?.lockedUntil != null && before.lockedUntil > now)",
        'unit/operations/people',
      ),
    ],
    'Give a sealed service wrong passphrases': [
      change(
        'server/operations/root/unseal.ts',
        'const before = pauses.get(origin);',
        'const before = [...pauses.values()].at(-1);',
        'unit/operations/unseal',
      ),
      change(
        'server/operations/root/unseal.ts',
        'await (isLocal(peer) ? local : outside).run(',
        'await outside.run(',
        'unit/operations/unseal',
      ),
    ],
    'Flood the XKS proxy with unsigned requests': [
      change(
        'server/operations/requests/request-queue.ts',
        'const isFull = own ? waitingUnsigned >= mostUnsigned : queue.length - waitingUnsigned >= length;',
        'const isFull = queue.length >= length;',
        'unit/operations/request-spaces',
      ),
    ],
    'Send unsigned requests to an endpoint': [
      change(
        'server/adapters/diagnosis/checks/caller-signatures.ts',
        'const later = failures.filter(({ at }) => passed === undefined || at > passed.at);',
        'const later = failures;',
        'scenario/endpoint-doctor',
      ),
    ],
    'Keep a connection open with an XKS client certificate': [
      change(
        'server/fronts/xks/client-certificate.ts',
        "return now() > known ? 'the client certificate has expired' : undefined;",
        'return undefined;',
        'unit/xks/client-certificate',
      ),
    ],
    'Give a role of their own AWS account': [
      change(
        'server/domain/authorization-rule.ts',
        "=> subject === 'principal' || subject === 'key';",
        '=> subject.length === 0;',
        'unit/operations/authorization-rules',
      ),
    ],
    'Write rules of their endpoint': [
      change(
        'server/operations/endpoints/endpoint-settings.ts',
        '  if (searches > Math.max(mostSearches, countSearches(before)))',
        '  if (searches > 1_000_000)',
        'unit/operations/authorization-rules',
      ),
    ],
    'Call the XKS proxy': [
      change(
        'server/fronts/xks/sigv4-reading.ts',
        "if (!signed.includes('host') || !signed.includes('x-amz-date'))",
        "if (!signed.includes('x-amz-date'))",
        'unit/xks/sigv4',
      ),
      change(
        'server/fronts/xks/sigv4.ts',
        'if (!verified) return refuse(refusalReasons.mismatch);',
        '',
        'unit/xks/sigv4',
      ),
      change(
        'server/fronts/xks/sigv4.ts',
        'if (Math.abs(now - time) > maxSkewMs)',
        'if (time > 9e15)',
        'unit/xks/sigv4',
      ),
      change(
        'server/fronts/xks/sigv4.ts',
        "if (service !== xksService) return refuse('the scope is for another service');",
        '',
        'unit/xks/sigv4',
      ),
    ],
    'Call with a credential of an endpoint': [
      change(
        'server/operations/data-path/create-working-memory.ts',
        'if (externalKeyId !== endpoint.externalKeyId) return undefined;',
        '',
        'conformance/xks-life',
      ),
    ],
  },
  'Balancer in `trusted_proxies`': {
    "Name any address as the caller's": [
      change(
        'server/operations/tde/authenticate-application.ts',
        'if (!certificates.has(shown.fingerprint))',
        'if (certificates.size === 0)',
        'scenario/application-callers',
      ),
    ],
    'Send no PROXY header': [
      change(
        'server/fronts/listener/proxy-protocol.ts',
        '!head.subarray(0, signature.length).equals(signature) || kind >> 4 !== 2',
        'kind < 0',
        'scenario/listener',
      ),
    ],
  },
  'Local user of a database host': {
    'Send SIGUSR1 or SIGUSR2': [
      change('server/base/foreign-signals.ts', "['SIGUSR1', 'SIGUSR2'] as const", '[] as const', 'scenario/listener'),
    ],
    "Connect to the agent's system socket": [
      change(
        'provider/agent/sessions/user-limits.ts',
        'if (amount > 0 && this.#counts[what] + amount > this.limits[what]) throw this.exceeded(what);',
        '',
        'scenario/agent-quotas',
      ),
    ],
    "Make the directory of another user's agent": [
      change(
        'provider/module/host/temporary_folder.c',
        'if (status.st_uid != user || !S_ISDIR(status.st_mode)) return FOLDER_OF_OTHERS;',
        'if (!S_ISDIR(status.st_mode)) return FOLDER_OF_OTHERS;',
        'scenario/bad-input-agent',
      ),
    ],
    'Run a database program that has the setuid': [
      change(
        'provider/module/host/secure_config.c',
        'if ((status.st_mode & 0177) != 0) return',
        'if (status.st_size < 0) return',
        'native/module/library-test.c',
      ),
    ],
    'Start the agent first': [
      change(
        'provider/module/host/launch.c',
        'syscall(SYS_setpriority, PRIO_PROCESS_WHO, 0, 0);',
        '',
        'native/module/library-test.c',
      ),
    ],
    'Send many costly frames': [
      change(
        'addon/core/frames/frame_loop.cc',
        "constexpr int64_t kTurn = 2'000'000;",
        "constexpr int64_t kTurn = 2'000'000'000;",
        'native/core/frames-test.cc',
      ),
    ],
    'Make thousands of calls to the service': [
      change(
        'provider/agent/sessions/user-limits.ts',
        'if (this.isFull(what)) throw this.exceeded(what);',
        '',
        'scenario/agent-quotas',
      ),
    ],
    'Name any path in a hello': [
      change(
        'provider/agent/settings/config.ts',
        "if (owner !== uid) throw new ConfigError(tell('config-owner', { config: path, owner, uid }));",
        '',
        'unit/agent/config',
      ),
      change(
        'provider/agent/settings/config.ts',
        'if ((mode & 0o077) !== 0)',
        'if ((mode & 0o007) !== 0)',
        'unit/agent/config',
      ),
    ],
  },
  'Database process': {
    'Use and destroy the keys of their application': [
      change(
        'server/domain/key-policy.ts',
        "if (!object.extractable) return 'not-extractable';",
        '',
        'unit/operations/tde-direct',
      ),
    ],
    'Create a key that encrypts and never decrypts': [
      change(
        'server/base/master-keys.ts',
        "key.wrappedSensitive === true || !key.usages.includes('decrypt')",
        'key.wrappedSensitive === true',
        'scenario/unreadable-master-key',
      ),
    ],
    'Call the TDE API without the agent': [
      change(
        'server/operations/tde/token-key-pipeline.ts',
        "if (use === 'export') await requireOwner(ports, caller, loaded, use);",
        '',
        'unit/operations/tde-direct',
      ),
    ],
    'Encrypt with GCM': [
      change(
        'addon/core/keys/used_ivs.cc',
        'return std::max(kLeastIvs, kMostIvs / std::max<size_t>(owners, 1));',
        'return owners == 0 ? kMostIvs : kMostIvs;',
        'native/core/replay-cache-test.cc',
      ),
    ],
    'Keep a key usable by Inits': [
      change(
        'provider/agent/service/service-answer-cache.ts',
        'if (this.#now() >= until && until - this.#lastMs < askedAt) return false;',
        '',
        'unit/agent/heartbeat',
      ),
    ],
    'Call a key, a host or a group': [
      change(
        'server/base/command-line.ts',
        "const ends = values.some((value, index) => isOperand(index) && value.startsWith('-'));",
        'const ends = false;',
        'unit/base/command-line',
      ),
      change(
        'server/base/command-line.ts',
        'if (plain.test(text)) return text;',
        "if (!text.includes(' ')) return text;",
        'unit/base/command-line',
      ),
    ],
    'Request objects of other groups': [
      change(
        'server/operations/tde/visibility.ts',
        'object.groupId === caller.application.groupId && object.tenantId === caller.application.tenantId;',
        'object.tenantId === caller.application.tenantId;',
        'unit/operations/groups',
      ),
      change(
        'server/operations/tde/visibility.ts',
        'object.groupId === caller.application.groupId && object.tenantId === caller.application.tenantId;',
        'object.groupId === caller.application.groupId;',
        'unit/operations/groups',
      ),
    ],
    'Know, use and derive from the keys of its tokens': [
      change(
        'server/adapters/crypto/message-states.ts',
        'owner: Buffer.from(`',
        "owner: Buffer.from(applicationId === '' ? '' : objectId) ?? Buffer.from(`",
        'unit/operations/message-states',
      ),
    ],
  },
  'Tenant user': {
    'Have invitations sent by mail': [
      change(
        'server/operations/people/mail-invitation.ts',
        "const shown = how === 'mail' ? null : invitation;",
        'const shown = invitation;',
        'unit/operations/mailed-invitations',
      ),
    ],
    'Start `dke login`': [
      change(
        'server/operations/people/device-sign-in.ts',
        'if ((await tx.tokens.get(everyTenant, id)) !== undefined) throw noSuchCode();',
        '',
        'unit/operations/device-sign-in',
      ),
    ],
    'Send requests concurrently': [
      change(
        'server/operations/people/sign-in.ts',
        'current.password !== user.password ||',
        '',
        'unit/operations/people',
      ),
    ],
    'Ask for a small deletion': [
      change(
        'server/operations/approvals/governed-operation.ts',
        'fingerprintOf(rulesOf(kind, plan), parameters, plan) === fingerprint &&',
        '',
        'unit/operations/approvals',
      ),
      change(
        'server/operations/approvals/governed-operation.ts',
        'least.every((name) => Number(marks[name] ?? 0) >= Number(shown[name] ?? 0))',
        'true',
        'unit/snapshots/copies',
      ),
    ],
    'Rename a vault under dual control': [
      change(
        'server/operations/vaults/rename-vault.ts',
        'vaults: isSo ? [] : [vault],',
        'vaults: [],',
        'unit/operations/approvals',
      ),
      change(
        'server/operations/applications/rename.ts',
        'vaults: vault === null ? [] : [vault],',
        'vaults: [],',
        'unit/operations/approvals',
      ),
      change('server/operations/approvals/former-names.ts', "vault: 'vault.renamed',", '', 'unit/operations/approvals'),
      change(
        'server/operations/approvals/former-names.ts',
        'all.reverse().sort((a, b) => b.heldMs - a.heldMs);',
        'all.reverse();',
        'unit/operations/former-names',
      ),
      change(
        'server/operations/approvals/former-names.ts',
        '.sort((a, b) => a.rank - b.rank || a.thing - b.thing);',
        ';',
        'unit/operations/former-names',
      ),
    ],
    'Rename an endpoint, a group': [
      change(
        'server/operations/approvals/governed-operation.ts',
        'named: eachOf(named, idOf, (things) => things.map(idOf).toSorted()),',
        'named: eachOf(named, nameOf, (things) => things.map(nameOf).toSorted()),',
        'unit/operations/approvals',
      ),
      change(
        'server/operations/approvals/governed-operation.ts',
        'rules: rules.map(({ vaultId, required, approvers }) => ({ vaultId, required, approvers })),',
        'rules,',
        'unit/operations/approvals',
      ),
    ],
    'Use what their roles allow': [
      change(
        'server/domain/access.ts',
        '(grant.tenantId === null || !platformOnly.has(permission)) &&',
        '',
        'unit/api/access',
      ),
      change(
        'server/operations/people/user-rules.ts',
        "const fault = user.grants.length === 0 ? undefined : faultOfGrants(user.grants, own, 'users:manage');",
        'const fault = undefined;',
        'unit/operations/people',
      ),
    ],
    'What their roles allow within their tenant': [
      change(
        'server/domain/access.ts',
        'tenantId === null || tenantId === asked;',
        'true || tenantId === asked;',
        'contract/tenant-matrix',
      ),
    ],
    'Manage users of their tenant': [
      change(
        'server/operations/people/user-rules.ts',
        "if (!isAllowed(own, 'users:manage', null, null))",
        "if (!own.some(({ tenantId }) => isAllowed(own, 'users:manage', tenantId, null)))",
        'scenario/open-id',
      ),
    ],
    'Revoke tokens and end sessions': [
      change(
        'server/operations/people/end-sessions.ts',
        "if (faultOfGrants(holder.grants, own, 'users:manage') !== undefined)",
        'if (own.length === 0)',
        'unit/operations/insiders',
      ),
    ],
    'Reset passwords of their tenant': [
      change(
        'server/operations/people/reset-password.ts',
        'await refuseNamedApprover(tx, id, naming);',
        '',
        'unit/operations/insiders',
      ),
      change(
        'server/operations/people/user-rules.ts',
        'if (rules.some(({ approvers }) => approvers?.includes(userId)))',
        'if (userId === id)',
        'unit/operations/insiders',
      ),
      change(
        'server/operations/access/identities.ts',
        "const beginnings = kind === 'user' ? (['user.created', 'password.changed'] as const) : (['token.created'] as const);",
        "const beginnings = kind === 'user' ? (['user.created'] as const) : (['token.created'] as const);",
        'unit/operations/approvals',
      ),
    ],
    'Own one application or endpoint': [
      change(
        'server/domain/access.ts',
        'granted === null || (asked !== null && granted.kind === asked.kind && granted.id === asked.id);',
        'granted === null || (asked !== null && granted.kind === asked.kind);',
        'contract/insider-matrix',
      ),
    ],
    'Register any `customKeyStoreId`': [
      change(
        'server/adapters/cloud/aws.ts',
        'return found?.XksProxyConfiguration?.UriPath === uriPath ? found : undefined;',
        'return found;',
        'scenario/external-key-stores',
      ),
    ],
    'Create an access_guid': [
      change(
        'server/domain/dual-control.ts',
        "actions.includes('destroy') ? 'refused' : 'allowed';",
        "actions.includes('export') ? 'refused' : 'allowed';",
        'unit/operations/approvals',
      ),
    ],
    'Sign in as one user': [
      change(
        'server/operations/people/profile.ts',
        'if (token === undefined || token.ownerId !== user.id)',
        'if (token === undefined)',
        'unit/operations/second-factors',
      ),
    ],
    'Lose a token, a session or a role': [
      change(
        'server/fronts/api/credential-end.ts',
        "!isMade || method === 'get'",
        "method === 'get'",
        'unit/api/credential-end',
      ),
      change(
        'server/fronts/api/serve-row.ts',
        "await call.stillAllowed('fresh');",
        'await call.stillAllowed();',
        'unit/api/credential-end',
      ),
      change('server/fronts/api/serve-row.ts', '    await stillAllowed();', '', 'unit/api/credential-end'),
      change(
        'server/operations/access/access.ts',
        ' && kept.length === before.grants.length',
        '',
        'unit/api/credential-end',
      ),
      change(
        'server/operations/people/session-secrets.ts',
        'isFresh ? undefined : believed.get(hash)',
        'believed.get(hash)',
        'unit/operations/people',
      ),
      change(
        'server/base/caller-belief.ts',
        'callerBelievedMs = 500',
        'callerBelievedMs = 1_000',
        'unit/operations/people',
      ),
    ],
    'Have a token of a user, or a session': [
      change(
        'server/operations/people/recent-sign-in.ts',
        'if (clock.now() - session.createdAt > recentMs)',
        'if (clock.now() - session.createdAt > 60 * recentMs)',
        'unit/operations/second-factors',
      ),
    ],
    'Create a token, and act as themselves': [
      change(
        'server/operations/approvals/decide-request.ts',
        'if (person === (await personOf(from, request.requestedBy.id)))',
        'if (id === request.requestedBy.id)',
        'unit/operations/approvals',
      ),
      change(
        'server/operations/approvals/decide-request.ts',
        'if (person === (await personOf(from, by.id)))',
        'if (id === by.id)',
        'unit/operations/approvals',
      ),
    ],
    'Set the clock of the service back': [
      change(
        'server/operations/access/identities.ts',
        'if (((await newestOf(from, id, beginning))?.sequence ?? 0) > (requested?.sequence ?? -1)) return false;',
        '',
        'unit/operations/approvals',
      ),
    ],
    'Create users in their tenant': [
      change(
        'server/operations/people/create-user.ts',
        "hint: 'names are compared without regard to case',",
        'hint: (await tx.users.findByName(foldUserName(name)))?.tenantId ?? name,',
        'unit/operations/people',
      ),
    ],
    "Request an action that a vault's rule governs": [
      change(
        'server/operations/approvals/decide-request.ts',
        'if (!mayNow || !(await wasThereBefore(from, identity, request)))',
        'if (!mayNow)',
        'unit/operations/approvals',
      ),
      change(
        'server/operations/approvals/decide-request.ts',
        'if (!request.rules.some((rule) => mayApprove(rule, id)))',
        'if (request.rules.length === 0)',
        'unit/operations/approvals',
      ),
    ],
  },
  'Platform user': {
    'Verify the largest snapshot': [
      change(
        'server/adapters/store/store.ts',
        'tryOut: (work) => tryOut(engine.name, oneState, { authenticateRow, clock }, work),',
        'tryOut: (work) => writer.submit(() => work(transactions.tx)),',
        'contract/store',
      ),
    ],
    'Import a snapshot': [
      change(
        'server/operations/snapshots/own-file.ts',
        'if (isOwn || (key !== undefined && trustedSigners.some((text) => keyOf(text)?.equals(key)))) return;',
        'if (isOwn || key !== undefined) return;',
        'unit/snapshots/forged',
      ),
    ],
    'Restore a snapshot': [
      change(
        'server/operations/snapshots/restore-snapshot.ts',
        '(id !== fromTenantId || !isOwn) &&',
        'id !== fromTenantId &&',
        'unit/snapshots/forged',
      ),
      change(
        'server/operations/snapshots/restore-snapshot.ts',
        "kind === 'access-guid' || kind === 'credential' || (kind !== 'dual-control' && change !== 'created');",
        "kind === 'access-guid' || (kind !== 'dual-control' && change !== 'created');",
        'unit/operations/insiders',
      ),
    ],
    'Register a recovery key of their own': [
      change(
        'server/operations/snapshots/recovery-keys.ts',
        "? await secondIfAny(from, 'new recovery keys', { tenantId, requesterId, now: clock.now() })",
        '? null',
        'unit/snapshots/dual-control',
      ),
      change(
        'server/operations/snapshots/export-snapshot.ts',
        "? await secondIfAny(from, 'exports of snapshots', { tenantId, requesterId, now: clock.now() })",
        '? null',
        'unit/snapshots/dual-control',
      ),
    ],
    'Have dke.toml name a signer': [
      change(
        'server/operations/snapshots/restore-table.ts',
        'if (left.some((each) => !each.tampered && !leads(each))) throw strangeReference(table, column);',
        '',
        'unit/snapshots/swapped',
      ),
      change(
        'server/operations/snapshots/restore-table.ts',
        'if ((await tenantRows.findIn(table, target.tenantId, ids)).length !== found.length) throw takenIds(table);',
        '',
        'unit/snapshots/swapped',
      ),
      change(
        'server/operations/snapshots/restore-materials.ts',
        "=== 'other')\n        throw notOfItsRow(objectId);",
        "=== 'other')\n        return;",
        'unit/snapshots/swapped',
      ),
    ],
    'Restore an older or newer snapshot': [
      change(
        'server/operations/snapshots/restore-materials.ts',
        "if (kept.includes('other')) throw differs(String(row?.name ?? objectId), version);",
        '',
        'unit/snapshots/same-values',
      ),
      change(
        'server/operations/snapshots/restore-table.ts',
        "if (existing?.integrity === 'ok' && !each.tampered && differIn(fixed, each.row, existing.row))",
        "if (existing?.integrity !== 'ok' && differIn(fixed, each.row, existing?.row ?? each.row))",
        'unit/snapshots/same-values',
      ),
    ],
    'Use a break-glass token': [
      change(
        'server/domain/access.ts',
        "own.filter(({ role }) => role !== 'break-glass');",
        'own;',
        'unit/operations/insiders',
      ),
    ],
    'Use what their roles allow': [
      change(
        'server/domain/access.ts',
        'if (!isAllowed(own, giving, tenantId, null))',
        'if (own.length === 0)',
        'contract/insider-matrix',
      ),
    ],
    'Revoke an administrator token that was created on the host': [
      change(
        'server/operations/access/recovered-tokens.ts',
        'if (id === recovered.subjectId) return true;',
        '',
        'unit/operations/recovered-administrator',
      ),
      change(
        'server/operations/access/recovered-tokens.ts',
        'if (actorId !== id && (await isGivenBy({ audit }, recovered, actorId, seen))) return true;',
        'if (actorId === recovered.subjectId) return true;',
        'unit/operations/recovered-administrator',
      ),
      change(
        'server/operations/notifications/inbox.ts',
        "before.kind === 'administrator.recovered' &&",
        "before.kind === 'token.old' &&",
        'unit/operations/recovered-administrator',
      ),
    ],
    'Read everything that an administrator may': [
      change(
        'server/operations/access/manage-tokens.ts',
        'kind,\n        roles: grants.map(nameGrant),',
        'kind: token.toString(),\n        roles: grants.map(nameGrant),',
        'scenario/secrets',
      ),
    ],
  },
  'Identity provider': {
    'Sign in as any user of the provider': [
      change(
        'server/app/open/identity.ts',
        "if (role === undefined || rowOf(role).scoped === true || role === 'break-glass')",
        'if (role === undefined || rowOf(role).scoped === true)',
        'unit/api/access',
      ),
      change(
        'server/app/open/identity.ts',
        "if (role === undefined || rowOf(role).scoped === true || role === 'break-glass')",
        "if (role === undefined || role === 'break-glass')",
        'unit/api/access',
      ),
    ],
    'Name the subject of a user who has a password': [
      change('server/operations/people/claimed-roles.ts', 'user.password !== null ||', '', 'scenario/open-id'),
    ],
    'Not answer, or answer without an end': [
      change(
        'server/adapters/identity/open-id.ts',
        'await readAnswer(answer.body, longestAnswer, host)',
        'await readAnswer(answer.body, 1e12, host)',
        'scenario/open-id',
      ),
    ],
  },
  'Writer of the database': {
    'Change a value of a row': [
      change(
        'server/adapters/store/rows/row-codes.ts',
        'authenticationCode(authenticate, table, row, layout) === row.row_mac,',
        'row.row_mac.length > 0,',
        'contract/spoilt-rows',
      ),
    ],
    'Put ids, owners, versions': [
      change(
        'server/adapters/store/rows/row-codes.ts',
        'authenticationCode(authenticate, table, row, layout) === row.row_mac,',
        'row.row_mac.length > 0,',
        'unit/operations/swapped-rows',
      ),
    ],
    'Change a rule, a state or an owner in its row': [
      change(
        'server/adapters/store/rows/row-codes.ts',
        "if (found === undefined || found.integrity === 'ok') return found as Sound<T> | undefined;",
        'if (found === undefined || found.integrity !== null) return found as Sound<T> | undefined;',
        'unit/operations/unverified-rows',
      ),
      change(
        'server/adapters/store/schema/tables/vaults-table.ts',
        '    beside: {},\n',
        "    beside: { dual_control: 'mutant' },\n",
        'unit/operations/unverified-rows',
      ),
    ],
    'Give a row the id or the tenant': [
      change(
        'server/adapters/store/repositories/tenant-rows-repository.ts',
        "const isTheirs = integrity === 'ok' && (row.tenant_id ?? tenantId) === tenantId;",
        'const isTheirs = true;',
        'unit/snapshots/owned',
      ),
    ],
    'Insert or change the row of a recovery key': [
      change(
        'server/operations/snapshots/recovery-keys.ts',
        "if (integrity !== 'ok' || key?.length !== 32 || recoveryKeyId(key) !== id)",
        'if (key?.length !== 32)',
        'unit/operations/service-backup',
      ),
    ],
    'Change a row while a snapshot is created': [
      change(
        'server/operations/snapshots/restore-materials.ts',
        'found.filter(({ row }) => isWithout(row)),',
        'found,',
        'unit/snapshots/owned',
      ),
    ],
    'Restore an older version of a row': [
      change(
        'server/adapters/store/rows/row-set.ts',
        'if (!state.isLoaded) return true;',
        'if (state.known.size > 0) return true;',
        'contract/database-writer',
      ),
    ],
    'Take rows out of `node_changes`': [
      change(
        'server/adapters/store/rows/change-codes.ts',
        "canonicalJson(['node_changes', epoch, history, previous.epoch, previous.history, changes]),",
        "canonicalJson(['node_changes', epoch, history, changes]),",
        'unit/store/change-rows',
      ),
      change(
        'server/adapters/store/engine/postgres/change-rows.ts',
        "if (!isWhole) return 'pruned';",
        '',
        'unit/store/change-rows',
      ),
      change(
        'server/adapters/store/engine/postgres/change-rows.ts',
        "if (!isOurs) return 'changed';",
        '',
        'unit/store/change-rows',
      ),
    ],
    'Change the row of a destroyed copy of a key': [
      change(
        'server/operations/root/conclude-erasure.ts',
        "mayHaveAny ||= key.integrity !== 'ok';",
        '',
        'unit/snapshots/copies',
      ),
    ],
    'Move the beginning of an erasure run ahead': [
      change(
        'server/operations/root/conclude-erasure.ts',
        "if (key?.integrity !== 'ok' || key.tenantId !== tenantId) doubt(",
        'if (key === undefined) doubt(',
        'unit/snapshots/copies',
      ),
    ],
    'Remove the term by which search finds': [
      change(
        'server/operations/people/user-rules.ts',
        "if (isNamed || vault.integrity !== 'ok') return vault;",
        'if (isNamed) return vault;',
        'unit/operations/insiders',
      ),
    ],
    'Change the record of who created a token': [
      change(
        'server/operations/access/identities.ts',
        "if (token.integrity !== 'ok') return refuse(",
        "if (token.name === '') return refuse(",
        'unit/operations/token-persons',
      ),
      change(
        'server/operations/access/identities.ts',
        'return event === null ? refuse(',
        'return event === null ? undefined && refuse(',
        'unit/operations/earlier-tokens',
      ),
    ],
    'Change the row of a copy of a key, or remove it': [
      change(
        'server/operations/root/conclude-erasure.ts',
        'return found.length === ids.length && found.every(isSame) ? found : undefined;',
        'return found;',
        'unit/operations/erasure-walk',
      ),
      change(
        'server/operations/root/conclude-erasure.ts',
        '(await newestRestore(from)) !== restore;',
        'restore === null;',
        'unit/operations/erasure-walk',
      ),
    ],
    'Write a record into the log that a purged tenant': [
      change(
        'server/operations/tenants/purge-tenant.ts',
        '(await listPurged(from, before)).filter(({ clearedAt }) => clearedAt !== null);',
        'listPurged(from, before);',
        'unit/operations/erasure-walk',
      ),
    ],
    'Undo a unit of work that makes the KEK': [
      change(
        'server/adapters/store/transactions/unit-of-work.ts',
        'if (found?.keks === keks && !keksInMemory.isDoubtful()) return;',
        'if (found?.keks === keks) return;',
        'unit/native/key-ring',
      ),
    ],
    'Change the row of one file that left the service': [
      change(
        'server/operations/copies/manage-copies.ts',
        "if (copy.integrity !== 'ok') {",
        "if (copy.kind === 'none') {",
        'unit/snapshots/outside-copies',
      ),
    ],
    'Rewrite, remove or add an audit record before': [
      change(
        'server/operations/audit/compare-written.ts',
        'if (event.sequence !== next || (!isOthers && own?.equals(leaf) !== true))',
        'if (event.sequence !== next)',
        'unit/operations/compare-written',
      ),
    ],
    'Add a trigger, a rule, a function': [
      change(
        'server/adapters/store/schema/compare-schema.ts',
        '.filter((line) => !expected.has(line))',
        ".filter((line) => line === '')",
        'contract/database-writer',
      ),
    ],
    'Remove the row of a decision': [
      change(
        'server/adapters/store/repositories/decisions-repository.ts',
        'if (await isUnused()) return null;',
        'return await former(name);',
        'unit/operations/compared-rows',
      ),
    ],
    'Write or change the record of a request': [
      change(
        'server/adapters/store/repositories/tde-requests-repository.ts',
        'const integrity = policyRows.integrity(table, row);',
        "const integrity = row.at < 0 ? policyRows.integrity(table, row) : 'ok';",
        'contract/database-writer',
      ),
    ],
    'Put back the row of an approval request': [
      change(
        'server/operations/approvals/approval-requests.ts',
        'if (approval.endedAt === null) await requireOpen(from, approval);',
        '',
        'unit/operations/used-approvals',
      ),
    ],
    'Put back an older file of a snapshot': [
      change(
        'server/operations/snapshots/verify-snapshot.ts',
        'if (returned <= 0) return closing;',
        'if (returned <= 1e9) return closing;',
        'unit/snapshots/missing',
      ),
    ],
    'Put back an older value of a data object': [
      change(
        'server/adapters/store/rows/row-codes.ts',
        "return isOurs && hasItsValues(table, row) ? 'ok' : 'tampered';",
        "return isOurs ? 'ok' : 'tampered';",
        'unit/operations/data-values',
      ),
    ],
    'Remove a row, or add a removed one': [
      change(
        'server/adapters/store/rows/row-set.ts',
        'if (found.sum === sum) return older;',
        'if (found.sum > 0n) return older;',
        'contract/database-writer',
      ),
    ],
    'Forge a log with a stolen signing key': [
      change(
        'server/adapters/crypto/audit-key.ts',
        'until: { origin, size },',
        'until: null,',
        'unit/operations/audit-key',
      ),
      change('server/adapters/crypto/audit-key.ts', 'await tx.records.wipe(before);', '', 'unit/operations/audit-key'),
    ],
    'Rewrite the audit log': [
      change(
        'server/operations/audit/compare-log.ts',
        'if (!signed.equals(anchored.root)) return {',
        'if (signed.length === 0) return {',
        'scenario/quarantine',
      ),
    ],
    'Restart a node, or cause a failover': [
      change(
        'server/adapters/store/node-state.ts',
        'quarantine: accepts ? undefined : readQuarantine(place(quarantineName)),',
        'quarantine: undefined,',
        'unit/store/node-state',
      ),
    ],
    'Turn off durability settings': [
      change(
        'server/adapters/store/engine/postgres/session-settings.ts',
        "if (row.settings !== expectedSettings || row.commits === 'off')",
        "if (row.commits === 'off')",
        'unit/store/session-settings',
      ),
    ],
    'Own the database, and put functions': [
      change(
        'server/adapters/store/engine/postgres/session-settings.ts',
        'select pg_catalog.current_schema() as first',
        'select current_schema() as first',
        'unit/store/session-settings',
      ),
    ],
    'Make the keys of the database unreadable': [
      change(
        'server/app/start-errors.ts',
        'fix: whichOfBoth(config.root.path),',
        'fix: putBack(config.root.path),',
        'unit/base/start-errors',
      ),
    ],
    'Run a copy of a data directory': [
      change(
        'server/app/open/instance-lock.ts',
        "if (found === 'copy') {",
        "if (found === 'copy' && taken > 99) {",
        'unit/operations/copied-directory',
      ),
      change(
        'server/domain/host.ts',
        '(fileOf(former) === fileOf(present) && isSameHost(before, now))',
        'fileOf(former) === fileOf(present)',
        'unit/operations/copied-directory',
      ),
      change(
        'server/operations/nodes/fleet.ts',
        'run = { ...self.start, startedAt };',
        "run = { ...self.start, startedAt, directory: '' };",
        'scenario/nodes-contact',
      ),
    ],
    'Put back an older data directory': [
      change('server/adapters/sinks/file.ts', 'if (fork !== undefined) return fork;', '', 'scenario/audit-sinks'),
    ],
    'Write a text that no node has told': [
      change(
        'server/operations/service/told-health.ts',
        "return { health: 'what this node has told cannot be read' };",
        'return {};',
        'unit/operations/told-health',
      ),
      change(
        'server/operations/service/told-setting.ts',
        'before !== undefined && clock.monotonic() - before.at < compareEveryMs',
        'before !== undefined',
        'unit/operations/told-health',
      ),
      change(
        'server/adapters/store/repositories/nodes-repository.ts',
        "if (row === undefined || row.state === 'removed') return false;",
        '',
        'unit/operations/told-health',
      ),
    ],
    'Write a text as the state of the erasure run': [
      change(
        'server/operations/root/told-erasure.ts',
        "runOf(node) === run && node.duties.includes('erasure') &&",
        "node.duties.includes('erasure') &&",
        'unit/operations/told-erasure',
      ),
    ],
    'Mark a notification as resolved': [
      change(
        'server/adapters/store/repositories/notifications-repository.ts',
        "const ofKind = open.where('kind', '=', kind)",
        "const ofKind = db.selectFrom('notifications').selectAll().where('kind', '=', kind)",
        'unit/operations/notifications',
      ),
    ],
    'Commit changes while the rows are compared': [
      change(
        'server/adapters/store/rows/row-set.ts',
        "if (typeof as === 'object') return found === undefined || found > as.version || version >= found;",
        "if (typeof as === 'object') return found === undefined || version >= found;",
        'unit/operations/compared-rows',
      ),
    ],
    'Restore a whole older database': [
      change(
        'server/operations/audit/compare-log.ts',
        'if (anchored.size > size)',
        'if (anchored.size > size + 1e9)',
        'scenario/quarantine',
      ),
    ],
    'Insert or change a row of a sign-in under way': [
      change(
        'server/operations/people/attempts.ts',
        'return code === codeOf(attempt) ? attempt : undefined;',
        'return code === code ? attempt : undefined;',
        'unit/operations/attempts',
      ),
    ],
    'Create session values with a former session key': [
      change(
        'server/adapters/crypto/token-hashes.ts',
        "if (name === 'session-hash') await tx.records.wipe(before);",
        '',
        'unit/operations/session-key',
      ),
    ],
    'Create values of API tokens with a former token key': [
      change(
        'server/adapters/crypto/token-hashes.ts',
        'for (const record of stored.slice(0, -1)) await tx.records.wipe(record);',
        '',
        'unit/operations/token-key',
      ),
    ],
    'Read everything': [
      change(
        'server/adapters/crypto/token-hashes.ts',
        'return storedHash(purpose, own.versionOf(name), macOf(core, own.key(name), message));',
        'return message.toString();',
        'scenario/secrets',
      ),
    ],
  },
  'Writer of the place where backups are kept': {
    'Make a backup that a recovery key opens': [
      change(
        'server/adapters/archives/backup-file.ts',
        'if (closing.by.name === verifier.name && publicKeyOf(closing.by).equals(publicKeyOf(verifier))) return;',
        'if (closing.by.name === verifier.name) return;',
        'unit/snapshots/backup-file',
      ),
      change(
        'server/adapters/archives/backup-file.ts',
        'if (logged.has(closing.digest)) return;',
        'return;',
        'unit/snapshots/backup-file',
      ),
    ],
    'Change a row in it': [
      change(
        'server/app/host/restore-backup.ts',
        'findings.push(...report.findings);',
        '',
        'unit/operations/service-backup',
      ),
    ],
    'Write other epochs of the root key': [
      change(
        'server/app/host/restore-backup.ts',
        '...madeOf(held) });',
        '...madeOf({ records: preface.records, rootEpochs: preface.rootEpochs }) });',
        'unit/operations/service-backup',
      ),
    ],
    'Put another `dke.toml` into it': [
      change(
        'server/app/host/restore-backup.ts',
        'if (!applyConfiguration) {',
        "if (configuration === '') {",
        'unit/operations/service-backup',
      ),
    ],
    'Put files with other dates': [
      change(
        'server/cli/host/backup.ts',
        'if (id !== undefined && id !== own && !others.has(id)) others.set(id, name);',
        'others.set(name, name);',
        'unit/cli/backup',
      ),
      change(
        'server/cli/host/backup.ts',
        'if (id !== undefined && id !== own && !others.has(id)) others.set(id, name);',
        'if (id !== undefined && id !== own) others.set(name, name);',
        'unit/cli/backup',
      ),
    ],
    'Cut the power in the middle': [
      change(
        'server/app/host/create-backup.ts',
        'addReceipt(receiptPath(dataDirectory), begun);',
        '',
        'unit/operations/service-backup',
      ),
    ],
  },
  'Administrator of a log sink or of a receiver': {
    'Read, change or remove the records': [
      change(
        'server/cli/verify/audit-export.ts',
        'if (tree.root().equals(checkpoint.root)) signed',
        'if (tree.size > 0) signed',
        'scenario/audit-sinks',
      ),
    ],
    'Read all that is forwarded': [
      change(
        'server/operations/access/manage-tokens.ts',
        'kind,\n        roles: grants.map(nameGrant),',
        'kind: token.toString(),\n        roles: grants.map(nameGrant),',
        'scenario/secrets',
      ),
    ],
    'Answer nothing, drip': [
      change(
        'server/base/outside.ts',
        'if (size > most) throw new Error(',
        'if (size > 1e12) throw new Error(',
        'unit/base/outside',
      ),
    ],
  },
  'Former holder of a recovery key': {
    'A recovery key that was removed': [
      change(
        'server/operations/snapshots/recovery-keys.ts',
        'const live = (await from.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null);',
        'const live = await from.recoveryKeys.list();',
        'unit/snapshots/restore',
      ),
      change(
        'server/operations/snapshots/recovery-keys.ts',
        'const live = (await from.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null);',
        'const live = await from.recoveryKeys.list();',
        'unit/operations/service-backup',
      ),
    ],
  },
  'Holder of old files': {
    'An old copy of the database and its root key': [
      change(
        'server/operations/snapshots/own-file.ts',
        'return made.details.digest === digest && (await isInLog(read, ring, made));',
        "return made.details.digest !== '' && (await isInLog(read, ring, made));",
        'unit/snapshots/forged',
      ),
    ],
    'An old copy of the database | Open': [
      change('server/operations/root/run-erasure.ts', 'await ring.dropOldKeks(tx);', '', 'unit/operations/erasure'),
    ],
    'What a power failure at any write': [
      change(
        'server/operations/tenants/purge-tenant.ts',
        'if (tenant.clearedAt === null) await clearPurged(ports, actor, tenant.id);',
        '',
        'unit/operations/cut-off-operations',
      ),
    ],
    'A backup of the service with one of the root key': [
      change(
        'server/operations/copies/copies-of.ts',
        "waits: file.kind !== 'service-backup' || fitting.length > 0",
        "waits: file.kind !== 'service-backup'",
        'unit/snapshots/outside-copies',
      ),
      change(
        'server/operations/copies/copies-of.ts',
        'if (endedAt === null || time === null || endedAt >= time) return false;',
        'if (endedAt === null || time === null) return false;',
        'unit/snapshots/outside-copies',
      ),
    ],
    'A tenant with a restored copy': [
      change('server/operations/copies/copies-of.ts', 'if (copy.waits) count += 1;', '', 'unit/snapshots/copies'),
    ],
    'A snapshot file that was absent': [
      change(
        'server/operations/snapshots/verify-snapshot.ts',
        'const total = await exclusion.run(() => eraseUnits(ports, actor, snapshot));',
        'const total = counts?.erased ?? 0;',
        'unit/snapshots/missing',
      ),
    ],
    "An older copy of a snapshot's file": [
      change(
        'server/operations/snapshots/verify-snapshot.ts',
        'if (total < (counts?.erased ?? 0)) throw olderCopy();',
        '',
        'unit/snapshots/missing',
      ),
    ],
    'Start two copies of one machine': [
      change(
        'addon/core/base/random.cc',
        'fresh.bytes, sizeof fresh.bytes) != 1',
        'nullptr, 0) != 1',
        'native/core/random-test.cc',
      ),
    ],
  },
  'What happened to others': {
    'Names compared in two ways': [
      change(
        'server/domain/user.ts',
        "name.normalize('NFKC').replaceAll(/[ςσ]/g, 'Σ').toLowerCase().normalize('NFKC');",
        "name.replaceAll(/[ςσ]/g, 'Σ').toLowerCase();",
        'unit/operations/happened-to-others',
      ),
      change('server/domain/user.ts', '!looksLikeAnother(name);', 'true;', 'unit/operations/names'),
      change(
        'server/domain/user-name-looks.ts',
        '!ofOneScript.some((pattern) => pattern.test(spelled)) ||',
        '',
        'unit/operations/names',
      ),
    ],
    'The time of an answer': [
      change(
        'server/operations/people/sign-in-by-password.ts',
        'const verdict = await passwords.verify(password, sound ? user.password : null, from.peer);',
        "const verdict = sound ? await passwords.verify(password, user.password, from.peer) : 'wrong';",
        'unit/operations/people',
      ),
    ],
    'A one-time value is used twice': [
      change(
        'server/operations/people/one-time-passwords.ts',
        'if (factor === undefined || factor.counter >= step)',
        'if (factor === undefined)',
        'unit/operations/second-factors',
      ),
    ],
    'Work before authentication': [
      change('server/base/json-members.ts', 'if (depth > most) return true;', '', 'unit/api/validate'),
    ],
    'A cache without an owner': [
      change(
        'server/operations/data-path/create-working-memory.ts',
        "return view !== undefined && stopOf(view.tenantId) === 'deleted' ? undefined : view;",
        'return view;',
        'unit/operations/tenants',
      ),
    ],
    'A raw path decides': [
      change(
        'server/adapters/packages/package-folder.ts',
        'const file = await lstat(join(folder, name)).catch(() => undefined);',
        'const file = await stat(join(folder, name)).catch(() => undefined);',
        'unit/packages/directory',
      ),
      change(
        'server/fronts/shared/dispatch.ts',
        'if (!front.owns(incoming.url)) return next();',
        '',
        'unit/api/dispatch',
      ),
    ],
    'A list shows what a single read refuses': [
      change(
        'server/operations/search/find-anything.ts',
        'return ids.length === 0 ? null : { tenant: actor.tenantId, ids };',
        'return ids.length === 0 ? null : { tenant: actor.tenantId, ids: null };',
        'unit/operations/search',
      ),
    ],
    'The id of another tenant works': [
      change(
        'server/operations/copies/manage-copies.ts',
        'if (found === undefined || (reach !== everyTenant && found.tenantId !== reach))',
        'if (found === undefined)',
        'contract/tenant-matrix',
      ),
    ],
    'Control without authentication': [
      change(
        'server/fronts/api/authenticate.ts',
        'if (value === undefined) throw missing();',
        "if (value === 'none') throw missing();",
        'unit/api/front',
      ),
      change(
        'server/operations/root/unseal.ts',
        'if (found === undefined) {',
        'if (failures < 0) {',
        'unit/operations/unseal',
      ),
    ],
    'A confused deputy': [
      change(
        'server/domain/authorization-rule.ts',
        'every((field, index) => wanted[index]?.(field)) === true;',
        'every((field, index) => index < 5 || wanted[index]?.(field)) === true;',
        'unit/operations/authorization-rules',
      ),
    ],
    'Another valid certificate': [
      change(
        'server/fronts/xks/client-certificate.ts',
        'if (names.length !== 1 || names[0] !== wanted.commonName)',
        'if (!names.includes(wanted.commonName))',
        'unit/xks/client-certificate',
      ),
      change(
        'server/operations/tde/authenticate-application.ts',
        'if (!certificates.has(shown.fingerprint))',
        'if (certificates.size === 0)',
        'unit/operations/application-callers',
      ),
    ],
    'An expired secret works': [
      change('server/operations/people/find-session.ts', 'now >= session.expiresAt ||', '', 'unit/operations/people'),
      change(
        'server/operations/access/manage-tokens.ts',
        'found.expiresAt !== null && found.expiresAt <= now',
        'found.expiresAt === 0',
        'unit/operations/happened-to-others',
      ),
    ],
    'The right to use a key widens': [
      change(
        'server/domain/access.ts',
        'rowOf(grant.role).permissions.includes(permission),',
        'rowOf(grant.role).permissions.length > 0,',
        'contract/insider-matrix',
      ),
    ],
    'Two changes at once': [
      change(
        'server/operations/tde/token-key-pipeline.ts',
        "await requireStillUsable(tx, each, wanted[at]?.use ?? 'export');",
        '',
        'contract/concurrency',
      ),
    ],
    'A sign-in that another person began': [
      change(
        'server/operations/people/open-id.ts',
        'kept.binding !== bindingHash(binding)',
        "binding === ''",
        'scenario/open-id',
      ),
    ],
  },
};

/** Rows for which no change of one line is tried, and why. */
export const withoutChange: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Local user of a database host': {
    "Write into the directory of the provider's logs":
      'the rights are those of another OS user: without root, nothing fails',
    "Take the place of the agent's private socket":
      'two checks, of the folder and of the peer: each is enough for the test',
    'Send malformed or slow frames':
      'without a check of a length, the process reads outside its memory: the sanitizers of npm test find that',
  },
  'Database process': {
    "Close the library's descriptors": 'chance decides which number a descriptor gets: a change is not always noticed',
    'Load a second PKCS#11 library': 'an option of the linker, which test/house/library-binary.test.ts compares',
  },
  'Tenant user': {
    'Send the largest input': 'a delay is measured, not refused',
  },
  'Writer of the database': {
    'Put junk into the key records': 'the change would let an erasure run never end',
    'Remove all tokens':
      'the decision, the tokens and the record of the log each say that there was one: each is enough for the test',
    'Restart the node that waits for a standby': 'the change would let the test wait for its standby',
  },
  'Holder of old files': {
    'What a change of providers has left': 'the order of several writes, not one line',
    'A snapshot | Open it': 'the file is encrypted: there is no check that could be left out',
  },
  'What happened to others': {
    'Secrets in errors and logs': 'as for what is forwarded to sinks, above',
    'A call that failed has done something': 'a unit of work is a transaction of the database',
    'A change of other data writes a key':
      'keys are references outside the core: there is no line that could write one',
    'Parsers of bytes from outside': 'test/house/fuzz-targets.test.ts demands a fuzz target of each reader',
  },
};

/**
 * Rules that no row of the threat model is about: the rule, and changes of the code that enforces
 * it. At most one in twenty of all changes may survive.
 */
export const otherRules: Readonly<Record<string, readonly Change[]>> = {
  'a change of factors needs a recent sign-in': [
    change(
      'server/operations/people/recovery-codes.ts',
      'await requireRecent({ store, clock }, caller);',
      '',
      'unit/operations/second-factors',
    ),
    change(
      'server/operations/people/factors.ts',
      'await requireRecent(ports, caller);',
      '',
      'unit/operations/second-factors',
    ),
    change(
      'server/operations/people/one-time-passwords.ts',
      'await requireRecent({ store, clock }, caller);\n      const secret',
      'const secret',
      'unit/operations/second-factors',
    ),
    change(
      'server/operations/people/one-time-passwords.ts',
      'await requireRecent({ store, clock }, caller);\n      const factor',
      'const factor',
      'unit/operations/second-factors',
    ),
    change(
      'server/operations/people/add-passkey.ts',
      'await requireRecent(ports, caller);\n      const known',
      'const known',
      'unit/operations/second-factors',
    ),
    change(
      'server/operations/people/add-passkey.ts',
      'await requireRecent(ports, caller);\n      const read',
      'const read',
      'unit/operations/second-factors',
    ),
  ],
  'so do a first password and the approval of a command': [
    change(
      'server/operations/people/profile.ts',
      'if (user.password === null) await requireRecent(ports, caller);',
      'if (user.password === null) await Promise.resolve();',
      'unit/operations/passkeys',
    ),
    change(
      'server/operations/people/device-sign-in.ts',
      'await requireRecent(ports, caller);',
      '',
      'unit/operations/device-sign-in',
    ),
  ],
  'a new password is another one': [
    change(
      'server/operations/people/profile.ts',
      'if (current.equals(next))',
      'if (next.length === 0)',
      'unit/operations/people',
    ),
  ],
  "a user's own token lasts a year at most": [
    change(
      'server/operations/people/profile.ts',
      'const longestTokenMs = 366 * 86_400_000;',
      'const longestTokenMs = 3_660 * 86_400_000;',
      'unit/operations/second-factors',
    ),
  ],
  'a purge ends tokens, and is continued by the next start': [
    change(
      'server/operations/tenants/purge-steps.ts',
      'if (token?.revokedAt === null)',
      'if (token?.revokedAt === 0)',
      'unit/operations/tenants',
    ),
    change(
      'server/operations/tenants/purge-tenant.ts',
      "} else if (tenant.state === 'purged' && !cleared.has(tenant.id)) {",
      "} else if (tenant.state === 'purged' && cleared.has(tenant.id)) {",
      'unit/operations/tenants',
    ),
    change(
      'server/operations/tenants/purge-tenant.ts',
      'for (const step of Object.values(clearingSteps)) await step(ports, actor, tenantId);',
      '',
      'unit/operations/tenants',
    ),
  ],
  'a group has its name alone': [
    change(
      'server/operations/applications/create-group.ts',
      'if ((await tx.groups.findByName(tenantId, name)) !== undefined)',
      "if (name === '')",
      'unit/operations/groups',
    ),
  ],
  'what is over is no longer sent as new': [
    change(
      'server/operations/notifications/deliver.ts',
      'return now?.resolvedAt === null && now.stage === notification.stage;',
      'return now !== undefined;',
      'scenario/notifications',
    ),
  ],
  'a search of the audit log ends at `to`': [
    change(
      'server/adapters/store/repositories/audit-log-repository.ts',
      "if (to !== undefined) query = query.where('at', '<', to);",
      '',
      'unit/operations/audit-log',
    ),
  ],
  'sessions, idempotency keys, failures and others are removed when their time is over, not before': [
    change(
      'server/adapters/store/schema/tables/people-table.ts',
      "pruned: { past: { expires_at: 0, used_at: 'the idle time of sessions' } },",
      'pruned: { past: { expires_at: 0 } },',
      'unit/store/pruning',
    ),
    change(
      'server/adapters/store/schema/tables/people-table.ts',
      'pruned: { past: { failed_at: 2 * day } },',
      'pruned: { past: { failed_at: 200 * day } },',
      'unit/store/pruning',
    ),
    change(
      'server/adapters/store/schema/tables/idempotency-table.ts',
      'pruned: { past: { created_at: day } },',
      "pruned: { by: 'people' },",
      'unit/store/pruning',
    ),
    change(
      'server/adapters/store/repositories/pruning.ts',
      'sql.ref(column)} <= ',
      'sql.ref(column)} < ',
      'unit/store/pruning',
    ),
    change('server/adapters/store/repositories/pruning.ts', 'sql` or `', 'sql` and `', 'unit/store/pruning'),
    change(
      'server/adapters/store/repositories/pruning.ts',
      'await wipe({ tenantId, objectId: id, version: 1, class: recordClass });',
      'if (recordClass === undefined) await wipe({ tenantId, objectId: id, version: 1, class: recordClass });',
      'unit/store/pruning',
    ),
  ],
};

export const allMutants: readonly Mutant[] = [
  ...Object.entries(claims).flatMap(([section, rows]) =>
    Object.entries(rows).flatMap(([row, changes]) => changes.map((each) => ({ claim: `${section}: ${row}`, ...each }))),
  ),
  ...Object.entries(otherRules).flatMap(([claim, changes]) => changes.map((each) => ({ claim, ...each }))),
];
export const testOf = ({ test }: Pick<Mutant, 'test'>): string =>
  `test/${test}${test.startsWith('native/') ? '' : '.test.ts'}`;
