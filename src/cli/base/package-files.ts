/** Files that the package ships beside the program. */
import { readFile } from 'node:fs/promises'
import { isRecord } from '../../client/problems.ts'

export type ShippedFile =
  | 'openapi.json'
  | 'events.json'
  | 'city.schema.json'
  | 'agent.schema.json'
  | 'formula.schema.json'
  | 'order.schema.json'
  | 'commands.json'

/** Text of a file that lies beside `package.json`: in a checkout, and where the package is installed. */
export async function shippedText(name: ShippedFile): Promise<string> {
  const { folder } = await ownPackage()
  return readFile(new URL(name, folder), 'utf8')
}

export const packageVersion = async (): Promise<string> => (await ownPackage()).version

/** The nearest `package.json` above this file that is ours. */
async function ownPackage(): Promise<{ readonly folder: URL; readonly version: string }> {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    const text = await readFile(new URL('package.json', folder), 'utf8').catch(() => undefined)
    const file: unknown = text === undefined ? undefined : JSON.parse(text)
    if (isRecord(file) && file['name'] === 'svcctl') return { folder, version: String(file['version']) }
    if (folder.pathname === '/') throw new Error('the package of svcctl is not where it should be')
  }
}
