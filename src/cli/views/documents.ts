/** Files of formulas and orders on the command line: read here, checked and written over there. */
import { basename, dirname, resolve } from 'node:path'
import type { DocumentCheck } from '../../contract/automation/documents.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { readNamedText } from '../base/named-files.ts'
import type { Call } from '../framework/declaration.ts'
import { view } from '../print/view.ts'

const STDIN = '-'

export const FILE = { name: '<file>', description: 'The file; - for stdin.', complete: 'file' } as const
export const FILES = {
  name: '[files...]',
  description: 'Files; - for stdin. Without one: all of the city.',
  complete: 'file',
} as const

/** Its text; `-` is what comes in. */
export async function readDocument({ io }: Context, path: string): Promise<string> {
  if (path === STDIN) return io.stdin.readAll()
  return readNamedText(io, path)
}

type Issue = DocumentCheck['issues'][number]

const ISSUE = view<Issue>()('PLACE key message hint', {
  as: { PLACE: ({ file, line, column }: Issue) => `${file}:${line}:${column}` },
  name: ({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`,
})

/** Checks each file, or those of the city; exit code 1 where one is not valid. */
export const validateFiles =
  (directory: 'formulas' | 'orders') =>
  (call: Call<'validate-formula'> | Call<'validate-order'>): Promise<number> =>
    call.input.texts('files').length === 0 ? validateCity(call, directory) : validateGiven(call)

async function validateCity(
  { context, client, cityName, options }: Call<'validate-formula'> | Call<'validate-order'>,
  directory: 'formulas' | 'orders',
): Promise<number> {
  const { body } = await client.call('validate-config', { params: { cityName }, ...options })
  // `<pack>/formulas/NAME.toml` in a pack.
  const issues = body.issues.filter(({ file }) => file.split('/').at(-2) === directory)
  await context.print.list({ items: issues, ...ISSUE, json: JSON.stringify({ valid: issues.length === 0, issues }) })
  const files = new Set(issues.map(({ file }) => file)).size
  await context.note(
    files === 0
      ? `all ${directory} of ${cityName} are valid`
      : `${files} of the ${directory} ${files === 1 ? 'is' : 'are'} not valid`,
  )
  return files === 0 ? EXIT.ok : EXIT.failure
}

async function validateGiven({
  context,
  input,
  send,
}: Call<'validate-formula'> | Call<'validate-order'>): Promise<number> {
  const paths = input.texts('files')
  const issues: Issue[] = []
  let bad = 0
  for (const path of paths) {
    const source = await readDocument(context, path)
    const name = nameOf(path)
    const { body } = await send({ source, name })
    if (!body.valid) bad++
    issues.push(...body.issues.map((issue) => ({ ...issue, file: issue.file === body.file ? path : issue.file })))
  }
  const json = JSON.stringify({ valid: bad === 0, issues })
  await context.print.list({ items: issues, ...ISSUE, json })
  await context.note(bad === 0 ? 'valid' : `${bad} of ${paths.length} ${paths.length === 1 ? 'is' : 'are'} not valid`)
  return bad === 0 ? EXIT.ok : EXIT.failure
}

/** Where files are in force they go by their names; a draft may lie anywhere, under any. */
function nameOf(path: string): string | undefined {
  const isInForce = ['formulas', 'orders'].includes(basename(dirname(resolve(path))))
  return isInForce ? basename(path).replace(/\.toml$/, '') : undefined
}
