/** Where the formulas, orders and fragments of a city are. */
import { basename, dirname, join } from 'node:path'
import type { DocumentHome } from '../../../files/documents.ts'
import type { EffectiveConfig, EffectivePack } from './effective.ts'

/** Weakest first: packs of the city, the city, packs of each rig, the rig itself. */
export function documentHomes({ dir, packs, rigs }: EffectiveConfig): readonly DocumentHome[] {
  const of = (rig: string) => packs.filter((pack) => pack.rig === rig).map(packHome)
  const own: DocumentHome = { layer: 'city', rig: '', trusted: true, root: dir, ...besides(dir) }
  const ofRigs = rigs.flatMap(({ name, formulas_dir: formulas }) => [
    ...of(name),
    ...(formulas === undefined ? [] : [rigHome(dir, name, join(dir, formulas))]),
  ])
  return [...of(''), own, ...ofRigs]
}

const packHome = ({ dir, rig, binding, trusted, root }: EffectivePack): DocumentHome => ({
  layer: 'pack',
  rig,
  pack: binding,
  trusted,
  root,
  ...besides(dir),
})

const besides = (dir: string) => ({
  formulas: join(dir, 'formulas'),
  orders: join(dir, 'orders'),
  fragments: join(dir, 'template-fragments'),
})

/** Orders are beside what is called `formulas`; what is beside the city's is the city's. */
export function rigHome(city: string, rig: string, formulas: string): DocumentHome {
  const about = { layer: 'rig', rig, trusted: true, root: city } as const
  const hasMore = basename(formulas) === 'formulas' && dirname(formulas) !== city
  return hasMore ? { ...about, ...besides(dirname(formulas)) } : { ...about, formulas }
}
