// The schema of a PostgreSQL database as lines (compare-schema.ts). Functions, operators and casts of the service's own schema count as well: a
// statement may mean one of them. What an extension has made does not.

import type { SchemaList } from '../compare-schema.ts';

const tables = `(select oid, relname::text as name, relkind, relrowsecurity from pg_class
  where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f'))`;
const notOfExtension = (catalog: string, row: string): string =>
  `not exists (select from pg_depend where classid = '${catalog}'::regclass and objid = ${row}.oid and deptype = 'e')`;

export const postgresSchema: SchemaList = {
  typeNames: {
    text: 'text',
    bytewise: 'text C',
    integer: 'integer',
    long: 'bigint',
    double: 'double precision',
    bytes: 'bytea',
    sequence: 'bigint',
  },
  sequence: (table, column) => `nextval('${table}_${column}_seq'::regclass)`,
  list: `
    with t as ${tables},
    columns as (select t.name, t.relkind, t.oid, a.attname::text as own, a.attnum, a.attgenerated, a.attidentity,
        format_type(a.atttypid, a.atttypmod) || coalesce((select ' ' || collname from pg_collation c
          where c.oid = a.attcollation and collname <> 'default'), '') as type
      from t join pg_attribute a on a.attrelid = t.oid where a.attnum > 0 and not a.attisdropped)
    select name as place, 'column ' || name || '.' || own || ' ' || type || case when attgenerated = '' and attidentity = '' then '' else ' generated' end as line
      from columns where relkind = 'r'
    union all select c.name, 'default ' || c.name || '.' || c.own || ' ' || pg_get_expr(d.adbin, d.adrelid)
      from columns c join pg_attrdef d on d.adrelid = c.oid and d.adnum = c.attnum
    union all select t.name, case when k.contype = 'f' and array_length(k.conkey, 1) = 1
          then 'reference ' || t.name || '.' || (select own from columns c where c.oid = t.oid and c.attnum = k.conkey[1]) || ' to ' ||
            k.confrelid::regclass || case when k.confdeltype = 'a' and k.confupdtype = 'a' then '' else ' with actions' end
          else 'constraint ' || t.name || '.' || k.conname end
      from t join pg_constraint k on k.conrelid = t.oid where k.contype not in ('p', 'u', 'n')
    union all select t.name, 'index ' || t.name || '.' || i.indexrelid::regclass
      from t join pg_index i on i.indrelid = t.oid where not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype <> 'f')
    union all select t.name, 'trigger ' || t.name || '.' || g.tgname from t join pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal
    union all select t.name, 'rule ' || t.name || '.' || r.rulename from t join pg_rewrite r on r.ev_class = t.oid where r.rulename <> '_RETURN'
    union all select t.name, 'policy ' || t.name || '.' || p.polname from t join pg_policy p on p.polrelid = t.oid
    union all select t.name, 'row security of ' || t.name from t where t.relrowsecurity
    union all select t.name, 'child of ' || t.name from t join pg_inherits h on h.inhparent = t.oid
    union all select null, 'function ' || p.proname from pg_proc p where p.pronamespace = current_schema()::regnamespace and ${notOfExtension('pg_proc', 'p')}
    union all select null, 'operator ' || o.oprname from pg_operator o where o.oprnamespace = current_schema()::regnamespace and ${notOfExtension('pg_operator', 'o')}
    union all select null, 'cast to ' || c.casttarget::regtype from pg_cast c where c.oid >= 16384 and ${notOfExtension('pg_cast', 'c')}`,
};
