/** Two elements of one file with the same identity: merging layers would hide that, so it is refused before. */

import { shapeOf } from '../../../contract/base/config-shape.ts'
import type { Schema } from '../../../contract/base/schema.ts'
import { placeText } from '../../../files/issues.ts'
import type { TableNode } from '../../../files/toml.ts'
import type { LoadContext } from './context.ts'
import { identityOf } from './merge.ts'

/** Elements of one file that say the same thing twice, in every list whose elements have an identity. */
export function refuseDuplicates(context: LoadContext, table: TableNode, schema: Schema, key = ''): void {
  for (const [name, child] of table.entries) {
    const field = shapeOf(schema).properties[name]
    if (field === undefined) continue
    const { identity } = shapeOf(field).annotation
    const path = key === '' ? name : `${key}.${name}`
    if (child.kind === 'table') refuseDuplicates(context, child, field, path)
    if (child.kind !== 'list' || identity === undefined) continue
    const seen = new Map<string, number>()
    for (const [index, element] of child.items.entries()) {
      const id = identityOf(element, identity) ?? ''
      const first = child.items[seen.get(id) ?? -1]
      if (first === undefined) seen.set(id, index)
      else
        context.issues.error(
          element.at,
          `${path}[${index}]`,
          `there is a second ${describeIdentity(id)}: the first is at ${placeText(first.at)}`,
        )
    }
  }
}

function describeIdentity(id: string): string {
  const parts: unknown = JSON.parse(id)
  const names = Array.isArray(parts) ? parts.map(String).filter((part) => part !== '') : []
  return `entry for \`${names.join('/')}\``
}
