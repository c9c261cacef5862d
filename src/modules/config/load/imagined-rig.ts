/** A rig that nobody has: with it a city shows what is wrong with agents and imports that only rigs have. */
import { withoutMark } from '../../../files/read.ts'
import type { PlainValue } from '../../../files/toml.ts'
import { addElement } from '../../../files/toml-edit.ts'

/** `city.toml` with one more rig, as the next `POST /rigs` would write it; undefined where the file cannot be edited. */
export function withImaginedRig(cityToml: Buffer, imports: Readonly<Record<string, PlainValue>>): string | undefined {
  const copied = Object.keys(imports).length === 0 ? {} : { imports }
  const rig = { name: 'imagined-rig', prefix: 'zzimagined', ...copied }
  try {
    return addElement(withoutMark(cityToml.toString('utf8')), ['rigs'], rig)
  } catch {
    return undefined
  }
}
