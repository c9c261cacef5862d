/** Files that go with messages of chats: read here and uploaded, or downloaded and written. */
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { CallOptions, Client } from '../../client/client.ts'
import { pathOf, routeOf } from '../../client/client.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { mediaTypeOf } from '../base/media-types.ts'
import { unreadable } from '../base/named-files.ts'
import type { Call } from '../framework/declaration.ts'

interface Uploading {
  readonly context: Context
  readonly client: Client
  readonly cityName: string
  readonly options: CallOptions & { readonly signal: AbortSignal }
}

/** The file of that name, as large as it may be. */
export async function upload({ context, client, cityName, options: { signal } }: Uploading, file: string) {
  const path = resolve(context.io.cwd, file)
  const found = await stat(path).catch((error: unknown) => {
    throw unreadable(file, error)
  })
  if (!found.isFile()) throw usageError(`cannot read ${file}: it is no file`)
  return await client.call('upload-transcript-attachment', {
    params: { cityName },
    query: { filename: basename(path) },
    headers: { 'content-type': mediaTypeOf(path) },
    body: createReadStream(path),
    signal,
  })
}

/** Its bytes, to a file or to whoever reads stdout; a terminal is none of those. */
export async function download({
  context,
  input,
  client,
  cityName,
  said,
  options,
}: Call<'get-transcript-attachment'>): Promise<number> {
  const { io } = context
  const file = input.text('to')
  if (file === undefined && io.stdout.isTerminal) throw usageError('bytes are not for a terminal', 'say --to FILE')
  const { path: pattern } = routeOf('get-transcript-attachment')
  const path = pathOf(pattern, { cityName, attachmentId: said.attachmentId }, {})
  const response = await client.send({ method: 'GET', path, signal: options.signal })
  if (!response.ok) throw new ApiProblem(response.status, response.headers, await response.text())
  if (file === undefined) {
    for await (const chunk of response.body ?? []) await context.print.raw(chunk)
    return EXIT.ok
  }
  const bytes = Readable.from(response.body ?? [])
  await pipeline(bytes, createWriteStream(resolve(io.cwd, file)), { signal: options.signal })
  await context.note(`written: ${file}`)
  return EXIT.ok
}
