/** TOML as plain values: for files of which places and comments do not matter here. */
import { getStaticTOMLValue, ParseError, parseTOML } from 'toml-eslint-parser'

export type TomlTable = Readonly<Record<string, unknown>>

export class TomlError extends Error {
  readonly line: number

  constructor(line: number) {
    super(`not valid TOML (line ${line})`)
    this.line = line
  }
}

/** Throws TomlError, which repeats nothing of the text. */
export function parseToml(text: string): TomlTable {
  try {
    const value: unknown = getStaticTOMLValue(parseTOML(text, { tomlVersion: '1.0.0' }))
    return isTable(value) ? value : {}
  } catch (error) {
    if (error instanceof ParseError) throw new TomlError(error.lineNumber)
    throw error
  }
}

export const isTable = (value: unknown): value is TomlTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
