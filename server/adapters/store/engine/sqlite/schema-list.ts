// The schema of the embedded database as lines (compare-schema.ts).

import type { SchemaList } from '../../schema/compare-schema.ts';

const own = "sqlite_master t where t.type = 'table' and t.name not like 'sqlite%'";
const each = own.replace(' where', ', %s where');

/**
 * What the statement of a declared table has beside quoted names and texts. What else a table can
 * have (check, collate, generated, strict) is a rule.
 */
const words =
  /\b(create|table|text|integer|blob|double|precision|not|null|primary|key|unique|references|constraint|default|autoincrement|\d+)\b|[(),\s]/gi;
const quoted = /"[^"]*"|'[^']*'/g;

export const sqliteSchema: SchemaList = {
  typeNames: {
    text: 'text',
    integer: 'integer',
    long: 'integer',
    double: 'double precision',
    bytes: 'blob',
    sequence: 'integer',
  },
  keysAreNotNull: false,
  sequence: () => 'autoincrement',
  read: (line) => {
    const table = /^table (\S+) (.*)$/s.exec(line);
    if (table !== null) {
      const others = table[2]
        ?.replace(/^create table \S+/i, '')
        .replaceAll(quoted, '')
        .replaceAll(words, ' ')
        .trim();
      return others === '' ? undefined : `constraint of ${table[1]}: ${others}`;
    }
    return line.replace(/^(index \S+) create( unique)? index \S+ on \S+ /is, '$1$2 ');
  },
  list: `
    select t.name as place, 'column ' || t.name || '.' || c.name || ' ' || lower(c.type) || iif(c.hidden = 0, '', ' generated') || iif(c."notnull", ' not null', '') as line
      from ${each.replace('%s', 'pragma_table_xinfo(t.name) c')}
    union all select t.name, 'default ' || t.name || '.' || c.name || ' ' || c.dflt_value
      from ${each.replace('%s', 'pragma_table_xinfo(t.name) c')} and c.dflt_value is not null
    union all select t.name, 'reference ' || t.name || '.' || k."from" || ' to ' || k."table" || ' ' || coalesce(k."to", 'id') ||
        iif(k.on_delete = 'NO ACTION' and k.on_update = 'NO ACTION', '', ' on delete ' || k.on_delete || ' on update ' || k.on_update)
      from ${each.replace('%s', 'pragma_foreign_key_list(t.name) k')}
    union all select t.name, 'default ' || t.name || '.' || c.name || ' autoincrement'
      from ${each.replace('%s', 'pragma_table_xinfo(t.name) c')} and c.pk = 1 and t.sql like '%autoincrement%'
    union all select t.name, 'primary key ' || t.name || ' ' || (select group_concat(name, ', ' order by pk) from pragma_table_xinfo(t.name) where pk > 0)
      from ${own} and exists (select 1 from pragma_table_xinfo(t.name) where pk > 0)
    union all select t.name, 'unique ' || t.name || ' ' || (select group_concat(name, ', ' order by seqno) from pragma_index_info(l.name))
      from ${each.replace('%s', 'pragma_index_list(t.name) l')} and l.origin = 'u'
    union all select tbl_name, type || ' ' || tbl_name || '.' || name || iif(type = 'index', ' ' || sql, '') from sqlite_master
      where type not in ('table', 'index') or type = 'index' and sql is not null
    union all select t.name, 'table ' || t.name || ' ' || t.sql from ${own}`,
};
