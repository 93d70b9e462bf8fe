// Custom key stores of type EXTERNAL_KEY_STORE and their connection. ConnectCustomKeyStore answers
// at once; what its probe of the proxy then finds is the store's ConnectionState, with a
// ConnectionErrorCode when it is FAILED. Left out: CloudHSM stores, and proxies behind a VPC
// endpoint service.

import { randomUUID } from 'node:crypto';
import { cloudFaults } from '../../base/cloud-causes.ts';
import type { CloudCrypto } from './crypto.ts';
import { asException, KmsException, ProxyFault } from './exceptions.ts';
import { type Input, invalid, member, oneOf, optionalText, text } from './input.ts';
import type { ProxyAddress, ProxyClient, Requester } from './proxy.ts';
import type { AccessKey } from './verify-kms-caller.ts';

export type ConnectionState = 'CONNECTED' | 'CONNECTING' | 'DISCONNECTED' | 'FAILED';

export interface KeyStore {
  readonly id: string;
  name: string;
  readonly createdAt: number;
  address: ProxyAddress;
  key: AccessKey;
  proxy: ProxyClient;
  state: ConnectionState;
  error: string | undefined;
  /** Counts connects and disconnects, so that a late probe does not speak for a later one. */
  connection: number;
}

export interface KeyStores {
  create(by: Requester, input: Input, secret: Buffer | null): Promise<object>;
  connect(by: Requester, input: Input): object;
  disconnect(input: Input): object;
  describe(input: Input): object;
  update(by: Requester, input: Input, secret: Buffer | null): Promise<object>;
  remove(input: Input): object;
  /** Throws CustomKeyStoreNotFoundException. */
  get(id: string): KeyStore;
  close(): void;
}

const nameShape = /^[\s\S]{1,256}$/;
const pathShape = /^(\/[A-Za-z0-9/_-]{1,100})?\/kms\/xks\/v1$/;
const endpointShape = /^https:\/\/[A-Za-z0-9.[\]:-]{1,118}$/;
const accessKeyIdShape = /^[A-Z2-7]{20,30}$/;

const secretFits = (secret: Uint8Array): boolean =>
  secret.length >= 43 &&
  secret.length <= 64 &&
  secret.every((byte) => /[A-Za-z0-9/+=]/.test(String.fromCharCode(byte)));

const checkAddress = (address: ProxyAddress): ProxyAddress => {
  if (address.uriPath.length > 128 || !URL.canParse(address.uriEndpoint)) throw invalid('the address is malformed');
  return address;
};

export interface KeyStoreOptions {
  readonly crypto: CloudCrypto;
  readonly open: (address: ProxyAddress, key: AccessKey, storeId: string) => ProxyClient;
  readonly hasKeys: (storeId: string) => boolean;
  readonly clock: () => number;
}

/** The stores by id, and what no two of them share. */
const createRegistry = () => {
  const stores = new Map<string, KeyStore>();

  const get = (id: string): KeyStore => {
    const store = stores.get(id);
    if (store === undefined) throw new KmsException('CustomKeyStoreNotFoundException', 'no such custom key store');
    return store;
  };
  const named = (input: Input): KeyStore => get(text(input, 'CustomKeyStoreId'));
  const requireFreeName = (name: string, own?: KeyStore): void => {
    for (const store of stores.values())
      if (store !== own && store.name === name)
        throw new KmsException('CustomKeyStoreNameInUseException', 'another custom key store has this name');
  };
  const requireFreeAddress = ({ uriEndpoint, uriPath }: ProxyAddress, own?: KeyStore): void => {
    for (const { address, id } of stores.values())
      if (id !== own?.id && address.uriEndpoint === uriEndpoint && address.uriPath === uriPath)
        throw new KmsException('XksProxyUriInUseException', 'another custom key store has this endpoint and path');
  };
  const requireFree = (name: string, address: ProxyAddress): void => {
    requireFreeName(name);
    requireFreeAddress(address);
  };
  return { stores, get, named, requireFree, requireFreeName, requireFreeAddress };
};

const requireState = (store: KeyStore, ...states: readonly ConnectionState[]): void => {
  if (!states.includes(store.state))
    throw new KmsException('CustomKeyStoreInvalidStateException', `the custom key store is ${store.state}`);
};

const readAccessKey = (crypto: CloudCrypto, input: Input, secret: Buffer | null): AccessKey | undefined => {
  const credential = member(input, 'XksProxyAuthenticationCredential');
  if (credential === undefined) return undefined;
  const accessKeyId = text(credential, 'AccessKeyId', accessKeyIdShape);
  if (secret === null || !secretFits(secret)) throw invalid('RawSecretAccessKey is missing or malformed');
  return { accessKeyId, secret: crypto.importSecret('generic', secret) };
};

/** A proxy that has answered GetHealthStatus; otherwise nothing of it stays. */
const openChecked = async (
  open: KeyStoreOptions['open'],
  by: Requester,
  address: ProxyAddress,
  key: AccessKey,
  storeId: string,
): Promise<ProxyClient> => {
  const proxy = open(address, key, storeId);
  try {
    await asException('create', () => proxy.health(by));
    return proxy;
  } catch (error) {
    proxy.close();
    throw error;
  }
};

/**
 * What the probe of the proxy finds is the store's state, unless the store was connected or
 * disconnected in the meantime.
 */
const startConnecting = (store: KeyStore, by: Requester): void => {
  requireState(store, 'DISCONNECTED', 'FAILED');
  store.state = 'CONNECTING';
  store.error = undefined;
  store.connection += 1;
  const { connection } = store;
  const finish = (state: ConnectionState, error?: string): void => {
    if (store.connection === connection) [store.state, store.error] = [state, error];
  };
  store.proxy.health(by).then(
    () => finish('CONNECTED'),
    (error: unknown) =>
      finish('FAILED', error instanceof ProxyFault ? cloudFaults[error.fault].connect : 'INTERNAL_ERROR'),
  );
};

const descriptionOf = (store: KeyStore): object => ({
  CustomKeyStoreId: store.id,
  CustomKeyStoreName: store.name,
  CustomKeyStoreType: 'EXTERNAL_KEY_STORE',
  ConnectionState: store.state,
  ConnectionErrorCode: store.error,
  CreationDate: store.createdAt / 1000,
  XksProxyConfiguration: {
    Connectivity: 'PUBLIC_ENDPOINT',
    AccessKeyId: store.key.accessKeyId,
    UriEndpoint: store.address.uriEndpoint,
    UriPath: store.address.uriPath,
  },
});

export const createKeyStores = ({ crypto, open, hasKeys, clock }: KeyStoreOptions): KeyStores => {
  const { stores, get, named, requireFree, requireFreeName, requireFreeAddress } = createRegistry();
  return {
    get,
    create: async (by, input, secret) => {
      if (oneOf(input, 'CustomKeyStoreType', ['EXTERNAL_KEY_STORE']) === undefined)
        throw invalid('CustomKeyStoreType must be EXTERNAL_KEY_STORE');
      oneOf(input, 'XksProxyConnectivity', ['PUBLIC_ENDPOINT']);
      const name = text(input, 'CustomKeyStoreName', nameShape);
      const address = checkAddress({
        uriEndpoint: text(input, 'XksProxyUriEndpoint', endpointShape),
        uriPath: text(input, 'XksProxyUriPath', pathShape),
      });
      requireFree(name, address);
      const key = readAccessKey(crypto, input, secret);
      if (key === undefined) throw invalid('XksProxyAuthenticationCredential is missing');
      try {
        const id = `cks-${randomUUID().replaceAll('-', '').slice(0, 17)}`;
        const proxy = await openChecked(open, by, address, key, id);
        // Another call may have taken them while the proxy was asked.
        try {
          requireFree(name, address);
        } catch (error) {
          proxy.close();
          throw error;
        }
        stores.set(id, {
          id,
          name,
          createdAt: clock(),
          address,
          key,
          proxy,
          state: 'DISCONNECTED',
          error: undefined,
          connection: 0,
        });
        return { CustomKeyStoreId: id };
      } catch (error) {
        crypto.release(key.secret);
        throw error;
      }
    },

    connect: (by, input) => {
      startConnecting(named(input), by);
      return {};
    },

    disconnect: (input) => {
      const store = named(input);
      requireState(store, 'CONNECTED', 'CONNECTING', 'FAILED');
      [store.state, store.error] = ['DISCONNECTED', undefined];
      store.connection += 1;
      return {};
    },

    describe: (input) => {
      const id = optionalText(input, 'CustomKeyStoreId');
      const name = optionalText(input, 'CustomKeyStoreName');
      const found = [...stores.values()].filter(
        (store) => (id ?? store.id) === store.id && (name ?? store.name) === store.name,
      );
      if (found.length === 0 && (id ?? name) !== undefined)
        throw new KmsException('CustomKeyStoreNotFoundException', 'no such custom key store');
      return {
        CustomKeyStores: found.map(descriptionOf),
        Truncated: false,
      };
    },

    update: async (by, input, secret) => {
      const store = named(input);
      const name = optionalText(input, 'NewCustomKeyStoreName', nameShape) ?? store.name;
      requireFreeName(name, store);
      oneOf(input, 'XksProxyConnectivity', ['PUBLIC_ENDPOINT']);
      const uriEndpoint = optionalText(input, 'XksProxyUriEndpoint', endpointShape);
      const uriPath = optionalText(input, 'XksProxyUriPath', pathShape);
      const address = checkAddress({
        uriEndpoint: uriEndpoint ?? store.address.uriEndpoint,
        uriPath: uriPath ?? store.address.uriPath,
      });
      // Name and credential may change under a connected store.
      if (uriEndpoint !== undefined || uriPath !== undefined) requireState(store, 'DISCONNECTED', 'FAILED');
      requireFreeAddress(address, store);
      const fresh = readAccessKey(crypto, input, secret);
      if (fresh !== undefined || uriEndpoint !== undefined || uriPath !== undefined) {
        const key = fresh ?? store.key;
        try {
          const proxy = await openChecked(open, by, address, key, store.id);
          const before = { proxy: store.proxy, key: store.key };
          Object.assign(store, { address, key, proxy });
          before.proxy.close();
          if (before.key !== key) crypto.release(before.key.secret);
        } catch (error) {
          if (fresh !== undefined) crypto.release(fresh.secret);
          throw error;
        }
      }
      store.name = name;
      return {};
    },

    remove: (input) => {
      const store = named(input);
      if (hasKeys(store.id))
        throw new KmsException('CustomKeyStoreHasCMKsException', 'the custom key store has KMS keys');
      requireState(store, 'DISCONNECTED', 'FAILED');
      store.proxy.close();
      crypto.release(store.key.secret);
      stores.delete(store.id);
      return {};
    },

    close: () => {
      for (const { proxy } of stores.values()) proxy.close();
    },
  };
};
