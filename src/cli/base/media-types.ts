/** What files hold, by their names. */
import { extname } from 'node:path'

/** What agents are known to look at; anything else is taken for text. */
const TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.svg': 'image/svg+xml',
  '.pdf': 'application/pdf',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.csv': 'text/csv',
  '.html': 'text/html',
  '.wav': 'audio/wav',
  '.mp3': 'audio/mpeg',
}

/** By the name of the file. */
export const mediaTypeOf = (file: string): string => TYPES[extname(file).toLowerCase()] ?? 'text/plain'
