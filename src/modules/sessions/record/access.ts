/**
 * The token that an agent speaks to the API with, where the API asks for one (decision 65): one per generation, in the
 * environment of its process and nowhere else; we keep its hash, and accept it while that process may run.
 */
import { createHash } from 'node:crypto'

export const accessHash = (token: string): string => createHash('sha256').update(token).digest('hex')
