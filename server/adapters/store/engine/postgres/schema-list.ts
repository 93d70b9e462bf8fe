// The schema of a PostgreSQL database as lines (compare-schema.ts). Functions, operators and casts
// of the service's own schema count as well: a statement may mean one of them. What an extension
// has made does not.

import type { SchemaList } from '../../schema/compare-schema.ts';

const tables = `(select oid, relname::text as name, relkind, relpersistence, relrowsecurity from pg_class
  where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f'))`;
const notOfExtension = (catalog: string, row: string): string =>
  `not exists (select from pg_depend where classid = '${catalog}'::regclass and objid = ${row}.oid and deptype = 'e')`;

export const postgresSchema: SchemaList = {
  typeNames: {
    text: 'text C',
    integer: 'integer',
    long: 'bigint',
    double: 'double precision',
    bytes: 'bytea',
    sequence: 'bigint',
  },
  keysAreNotNull: true,
  sequence: (table, column) => `nextval('${table}_${column}_seq'::regclass)`,
  list: `
    with t as ${tables},
    columns as (select t.name, t.relkind, t.oid, case when a.attname ~ '^[a-z0-9_]+$' then '' else 'quoted ' end || a.attname::text as own, a.attnum, a.attgenerated, a.attidentity, a.attnotnull,
        format_type(a.atttypid, a.atttypmod) || coalesce((select ' ' || case when collnamespace = 'pg_catalog'::regnamespace then '' else 'own ' end || collname
          from pg_collation c where c.oid = a.attcollation and c.oid <> 'pg_catalog."default"'::regcollation), '') as type
      from t join pg_attribute a on a.attrelid = t.oid where a.attnum > 0 and not a.attisdropped)
    select name as place, 'column ' || name || '.' || own || ' ' || type || case when attgenerated = '' and attidentity = '' then '' else ' generated' end ||
        case when attnotnull then ' not null' else '' end as line
      from columns where relkind = 'r'
    union all select c.name, 'default ' || c.name || '.' || c.own || ' ' || pg_get_expr(d.adbin, d.adrelid)
      from columns c join pg_attrdef d on d.adrelid = c.oid and d.adnum = c.attnum
    union all select t.name, 'table ' || t.name || ' loses its rows in a crash' from t where t.relkind = 'r' and t.relpersistence <> 'p'
    union all select t.name, case when k.contype = 'f'
          then 'reference ' || t.name || '.' || regexp_replace(pg_get_constraintdef(k.oid), '^FOREIGN KEY \\((.*?)\\) REFERENCES (.*)$', '\\1 to \\2')
          else 'constraint ' || t.name || '.' || k.conname end
      from t join pg_constraint k on k.conrelid = t.oid where k.contype not in ('p', 'u', 'n')
    union all select t.name, case k.contype when 'p' then 'primary key ' || t.name when 'u' then 'unique ' || t.name else 'index ' || t.name || '.' || x.relname end ||
        case when i.indisunique and k.oid is null then ' unique ' else ' ' end ||
        regexp_replace(regexp_replace(pg_get_indexdef(i.indexrelid), '^.*? USING btree ', ''), ' WITH \\([^)]*\\)', '') ||
        case when k.condeferrable then ' deferrable' else '' end || case when i.indisvalid and i.indisready and i.indislive then '' else ' invalid' end
      from t join pg_index i on i.indrelid = t.oid join pg_class x on x.oid = i.indexrelid
        left join pg_constraint k on k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')
    union all select t.name, 'trigger ' || t.name || '.' || case when g.tgisinternal then 'of a reference' else g.tgname end from t join pg_trigger g on g.tgrelid = t.oid
      where not (g.tgisinternal and g.tgenabled = 'O' and exists (select from pg_proc p
        where p.oid = g.tgfoid and p.pronamespace = 'pg_catalog'::regnamespace and p.proname like 'RI\\_FKey\\_%'))
    union all select t.name, 'rule ' || t.name || '.' || r.rulename from t join pg_rewrite r on r.ev_class = t.oid where r.rulename <> '_RETURN'
    union all select t.name, 'policy ' || t.name || '.' || p.polname from t join pg_policy p on p.polrelid = t.oid
    union all select t.name, 'row security of ' || t.name from t where t.relrowsecurity
    union all select t.name, 'child of ' || t.name from t join pg_inherits h on h.inhparent = t.oid
    union all select null, 'function ' || p.proname from pg_proc p where p.pronamespace = current_schema()::regnamespace and ${notOfExtension('pg_proc', 'p')}
    union all select null, 'operator ' || o.oprname from pg_operator o where o.oprnamespace = current_schema()::regnamespace and ${notOfExtension('pg_operator', 'o')}
    union all select null, 'cast to ' || c.casttarget::regtype from pg_cast c where c.oid >= 16384 and ${notOfExtension('pg_cast', 'c')}`,
};
