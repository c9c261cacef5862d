/** Frames of server-sent events. */
import { jsonText } from '../json.ts'

/** Line ends of Unicode that JSON leaves as they are; readers in Python and other languages split lines there. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g

/** The frame of an event whose data is JSON text already. `data:` is one line, however a reader splits lines. */
export function textFrame(event: string, json: string, id?: string | number): string {
  const first = id === undefined ? '' : `id: ${id}\n`
  return `${first}event: ${event}\ndata: ${json.replaceAll(LINE_ENDS, escaped)}\n\n`
}

export const frame = (event: string, data: unknown, id?: string | number): string =>
  textFrame(event, jsonText(data), id)

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
