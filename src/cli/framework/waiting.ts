/** Commands that wait where there is nothing yet. */
import type { Reply } from '../../client/client.ts'
import type { Input } from '../base/command.ts'
import { type Context, REQUEST_TIMEOUT_MS } from '../base/context.ts'
import { parseTimeout } from './accepted.ts'
import { listAll, mostOf, type Page, pageSize, type WholeList } from './paged.ts'

/** The server holds one answer back no longer. */
const LONGEST_WAIT_MS = 120_000

const waitMs = (input: Input): Promise<number> => parseTimeout(input, 0, 'wait')

/** What a request may take that waits. */
export const timeoutWithWait = async (input: Input): Promise<number> => REQUEST_TIMEOUT_MS + (await waitMs(input))

/** What a page is asked for with. */
interface Asked {
  readonly limit: number
  readonly cursor: string | undefined
  readonly index?: number
  readonly wait?: string
}

/** As much of a list as was asked for; while it is empty, for as long as `--wait` says. */
export async function listWaiting<T>(
  { context: { io }, input }: { readonly context: Context; readonly input: Input },
  send: (asked: Asked) => Promise<Reply<Page<T>>>,
): Promise<WholeList<T>> {
  const { clock } = io
  const until = clock.now() + (await waitMs(input))
  const most = mostOf(input)
  return listAll(async (cursor) => {
    const page = { limit: pageSize(most), cursor }
    let reply = await send(page)
    while (cursor === undefined && reply.body.items.length === 0 && clock.now() < until) {
      const wait = `${Math.ceil(Math.min(until - clock.now(), LONGEST_WAIT_MS))}ms`
      reply = await send({ ...page, index: Number(reply.headers.get('x-svc-index')), wait })
    }
    return reply
  }, most)
}
