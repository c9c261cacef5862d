/** Records: objects whose keys are anybody's. */

/**
 * A schema of a record as it is meant. The library says of the keys that they match `^.*$`, which one with a line break
 * does not: whatever it held would be let through.
 */
export function ofAnyKey(schema: object): object {
  if (!('patternProperties' in schema)) return schema
  const { patternProperties, ...rest } = schema
  if (typeof patternProperties !== 'object' || patternProperties === null) return schema
  const [pattern, ...others] = Object.entries(patternProperties)
  if (pattern?.[0] !== '^.*$' || others.length > 0 || 'additionalProperties' in rest) return schema
  return { ...rest, additionalProperties: pattern[1] }
}
