/** Names and scalars that several families share. */

import { DURATION_PATTERN } from './durations.ts'
import { integer, raw, string } from './schema.ts'

/** An open JSON object. */
export const JsonObject = raw<{ [key: string]: unknown }>({ type: 'object' })

export const CITY_NAME_PATTERN = '^[a-zA-Z0-9][a-zA-Z0-9._-]*$'
export const MAX_CITY_NAME = 64
/** The supervisor's own log in composite cursors; no city can have this name. */
export const SUPERVISOR_SOURCE = '__supervisor__'

/** The name that a city can be registered under. */
export const CityName = string({
  pattern: CITY_NAME_PATTERN,
  minLength: 1,
  maxLength: MAX_CITY_NAME,
  description: 'Name of a city: letters, digits, dot, underscore and hyphen; case-sensitive.',
})

/**
 * A city's name in a path. Any text is taken: one that cannot be a name is simply not found (spec §3 rule 1), which a
 * client handles the same way.
 */
export const CityNameParam = string({ minLength: 1, description: 'Name of the city.', examples: ['alpha'] })

export const Timestamp = string({ format: 'date-time', description: 'RFC 3339, UTC.' })

/** Sequence number of an event in one log: the first is 1, each next one more. */
export const Seq = integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const REQUEST_ID_PATTERN = '^req-[0-9a-f]{24}$'
export const RequestId = string({ pattern: REQUEST_ID_PATTERN, description: 'Id of an accepted request.' })

/** Hash of an item's stored definition; the ETag without its quotes. */
export const Revision = string({
  description: "Hash of the item's stored definition; its ETag without the quotes.",
})

/** Schema of a duration as text, for example `30s`, `5m`, `1h30m` or `7d`. */
export function durationSchema(description: string) {
  return string({ pattern: DURATION_PATTERN.source, maxLength: 64, description, examples: ['30s'] })
}

/** Names of what is in a rig, in two segments of a path. */
export const QualifiedName = {
  dir: string({ minLength: 1, description: 'Rig.', examples: ['shop'] }),
  base: string({ minLength: 1, description: 'Name in the rig.', examples: ['worker'] }),
}
