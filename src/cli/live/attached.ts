/** Files that go with a message: read here, by the name that the caller gives. */
import { basename } from 'node:path'
import type { MessageAttachment } from '../../contract/sessions/sessions.ts'
import type { FlagSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { mediaTypeOf } from '../base/media-types.ts'
import { readNamedFile } from '../base/named-files.ts'

export const attachFlag: FlagSpec = {
  flags: '--attach <file...>',
  description: 'A picture or a file that goes with it; again for more.',
}

/** The field of a message; nothing where no file is named. */
export async function attached({ io }: Context, input: Input): Promise<{ attachments?: MessageAttachment[] }> {
  const files = input.texts('attach')
  if (files.length === 0) return {}
  const attachments = await Promise.all(
    files.map(async (file) => {
      const bytes = await readNamedFile(io, file)
      return { name: basename(file), mime_type: mediaTypeOf(file), data: bytes.toString('base64') }
    }),
  )
  return { attachments }
}
