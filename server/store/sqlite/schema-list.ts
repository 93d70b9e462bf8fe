// The schema of the embedded database as lines (compare-schema.ts).

import type { SchemaList } from '../compare-schema.ts';

const own = "sqlite_master t where t.type = 'table' and t.name not like 'sqlite%'";
const each = own.replace(' where', ', %s where');

export const sqliteSchema: SchemaList = {
  typeNames: {
    text: 'text',
    bytewise: 'text',
    integer: 'integer',
    long: 'integer',
    double: 'double precision',
    bytes: 'blob',
    sequence: 'integer',
  },
  list: `
    select t.name as place, 'column ' || t.name || '.' || c.name || ' ' || lower(c.type) || iif(c.hidden = 0, '', ' generated') as line
      from ${each.replace('%s', 'pragma_table_xinfo(t.name) c')}
    union all select t.name, 'default ' || t.name || '.' || c.name || ' ' || c.dflt_value
      from ${each.replace('%s', 'pragma_table_xinfo(t.name) c')} and c.dflt_value is not null
    union all select t.name, 'reference ' || t.name || '.' || k."from" || ' to ' || k."table" ||
        iif(k.on_delete = 'NO ACTION' and k.on_update = 'NO ACTION', '', ' on delete ' || k.on_delete || ' on update ' || k.on_update)
      from ${each.replace('%s', 'pragma_foreign_key_list(t.name) k')}
    union all select tbl_name, type || ' ' || tbl_name || '.' || name from sqlite_master
      where type not in ('table', 'index') or type = 'index' and sql is not null
    union all select t.name, 'constraint of ' || t.name from ${own}
      and (t.sql like '%on conflict%' or t.sql like '%check (%' or t.sql like '%check(%' or t.sql like 'create virtual%')`,
};
