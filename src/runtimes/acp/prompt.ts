/** A message as the content of a prompt: its text, then what is attached to it. */
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import type { ContentBlock } from '@agentclientprotocol/sdk'
import type { DeliveredAttachment, Delivery } from '../process/runtime.ts'

/** Rejects where a file of an attachment cannot be read: then nothing of the message may be said. */
export async function contentOf({ text, attachments = [] }: Delivery): Promise<ContentBlock[]> {
  return [{ type: 'text', text }, ...(await Promise.all(attachments.map(blockOf)))]
}

async function blockOf({ kind, name, mimeType, path, size }: DeliveredAttachment): Promise<ContentBlock> {
  const type = mimeType === undefined ? {} : { mimeType }
  const uri = pathToFileURL(path).href
  if (kind === 'link') return { type: 'resource_link', name, uri, size, ...type }
  const bytes = await readFile(path)
  const data = bytes.toString('base64')
  if (mimeType?.startsWith('image/')) return { type: 'image', data, mimeType }
  if (mimeType?.startsWith('audio/')) return { type: 'audio', data, mimeType }
  // The file is gone when the turn is over: its name is what it is known by.
  const address = `attachment:${encodeURIComponent(name)}`
  const resource = isText(mimeType)
    ? { uri: address, text: bytes.toString('utf8'), ...type }
    : { uri: address, blob: data, ...type }
  return { type: 'resource', resource }
}

const isText = (mimeType: string | undefined): boolean =>
  mimeType !== undefined &&
  /^text\/|^application\/(?:json|xml|toml|yaml|x-yaml|javascript)$|\+(?:json|xml)$/.test(mimeType)
