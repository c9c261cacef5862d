/** JSON Merge Patch (RFC 7396) bodies of configured things: every field as its schema says, or null to unset it. */

import { shapeOf } from './config-shape.ts'
import { raw, type Schema } from './schema.ts'

/** What values of environments are shown as; sent back, it leaves the stored value as it is. */
export const MASK = '***'

/** What a merge patch may carry: JSON with nulls. */
export type PatchValue = string | number | boolean | null | readonly PatchValue[] | PatchBody
export interface PatchBody {
  readonly [field: string]: PatchValue
}

/** The patch body `id` for objects with these fields; unknown fields are refused. Lists replace, maps merge. */
export function mergePatchBody(
  id: string,
  fields: Readonly<Record<string, Schema>>,
  description: string,
): Schema<PatchBody> {
  return raw<PatchBody>({ $id: id, description, ...nullableTable(fields) })
}

function nullableTable(fields: Readonly<Record<string, Schema>>): object {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, nullable(field)]))
  return { type: 'object', properties, additionalProperties: false }
}

function nullable(field: Schema): object {
  const { type, properties, item, description } = shapeOf(field)
  const null_ = { type: 'null' }
  const said = description === undefined ? {} : { description }
  if (type === 'table') return { ...said, anyOf: [nullableTable(properties), null_] }
  if (type === 'map' && item !== undefined)
    return { ...said, anyOf: [{ type: 'object', additionalProperties: { anyOf: [bare(item), null_] } }, null_] }
  return { ...said, anyOf: [bare(field), null_] }
}

/** The schema without what only matters where it stands: its description is on the union, its default does not apply. */
function bare(field: Schema): object {
  return Object.fromEntries(Object.entries(field).filter(([key]) => key !== 'description' && key !== 'default'))
}
