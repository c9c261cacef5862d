/** A list that is drawn over and over, in the place of the one before, until somebody leaves. */
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { Interrupted, type Terminal } from '../base/io.ts'
import type { ListOutput } from '../base/output.ts'
import { cutTo } from '../print/text-width.ts'
import { keyHandler, Screen } from './screen.ts'

/** Shows what `watch` says, until it ends, or `q` or Ctrl-C is pressed. */
export async function watchOnScreen<T>(
  context: Context,
  terminal: Terminal,
  watch: (show: (list: Omit<ListOutput<T>, 'json'>, nothing: string) => Promise<void>) => Promise<never>,
): Promise<number> {
  const left = Promise.withResolvers<number>()
  let drawing: (size: { readonly columns: number }) => Promise<readonly string[]> = async () => []
  const draw = () => {
    const { columns, rows } = screen.size
    void drawing({ columns }).then((lines) => screen.draw(lines.slice(0, rows)))
  }
  const onBytes = keyHandler(context.io.clock, (key) => {
    if (key.key === 'suspend') screen.suspend()
    if (key.key === 'redraw') screen.redraw()
    if (key.key === 'interrupt') left.reject(new Interrupted(EXIT.interrupted))
    if (key.key === 'text' && key.text === 'q') left.resolve(EXIT.ok)
  })
  using screen = new Screen(terminal, onBytes, draw)
  const watching = watch(async (list, nothing) => {
    drawing = ({ columns }) => linesOf(context, list, nothing, columns)
    draw()
  })
  return await Promise.race([left.promise, watching])
}

async function linesOf<T>(
  { print }: Context,
  list: Omit<ListOutput<T>, 'json'>,
  nothing: string,
  columns: number,
): Promise<readonly string[]> {
  if (list.items.length === 0) return [cutTo(nothing, columns)]
  let text = ''
  const sink = {
    isTerminal: true,
    columns,
    async write(part: string | Uint8Array) {
      text += String(part)
    },
  }
  await print.to(sink).list({ ...list, json: '' })
  return text.trimEnd().split('\n')
}
