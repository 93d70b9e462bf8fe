// A tenant owns everything else. The default one is made at first start.

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
}
