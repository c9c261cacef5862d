/**
 * Families: groups of operations. What all of a family have is said once, and so is what all below one path have
 * (`at`) or what several of one kind have (`with`). An operation then names what is its own, which wins; headers and
 * problems add up from the family down. Path parameters are found by their names in the path.
 */
import type { RequestHeader, ResponseHeader } from './headers.ts'
import type { Method, Operation } from './operation.ts'
import type { ProblemCode } from './problems.ts'
import { type Fields, type ObjectSchema, object } from './schema.ts'

/** A section of the documents. */
export interface Family {
  readonly name: string
  /** What its operations are about. */
  readonly about: string
}

/** What adds up. */
interface Lists {
  readonly headers?: readonly RequestHeader[]
  readonly replyHeaders?: readonly ResponseHeader[]
  readonly problems?: readonly ProblemCode[]
}
type FromPlace = 'id' | 'method' | 'path' | 'family' | 'params'
type Shared = Partial<Omit<Operation, FromPlace | keyof Lists>> & Lists
type Own = Shared & Pick<Operation, 'summary'>

type Over<S, T> = Omit<S, keyof T> & Omit<T, keyof Lists>
type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
type ParamsIn<Path extends string, Params extends Fields> = [NamesIn<Path>] extends [never]
  ? object
  : { readonly params: ObjectSchema<Pick<Params, NamesIn<Path> & keyof Params>> }

/** The operation that comes of what its place shares and what it says itself. */
type Declared<M extends Method, Id extends string, Path extends string, Params extends Fields, S, O> = {
  readonly id: Id
  readonly method: M
  readonly path: Path
  readonly family: Family
  readonly headers?: readonly RequestHeader[]
  readonly replyHeaders?: readonly ResponseHeader[]
  readonly problems: readonly ProblemCode[]
} & ParamsIn<Path, Params> &
  Over<S, O>

/** A family, or a place in it. */
class Place<Base extends string, Params extends Fields, S> {
  readonly #family: Family
  readonly #base: Base
  readonly #params: Params
  readonly #shared: Shared & S

  constructor(family: Family, base: Base, params: Params, shared: Shared & S) {
    this.#family = family
    this.#base = base
    this.#params = params
    this.#shared = shared
  }

  /** What stands below a path, with what it all has. */
  at<const Sub extends string, const T extends Shared>(
    sub: Sub,
    shared: T,
  ): Place<`${Base}${Sub}`, Params, Over<S, T>> {
    return new Place(this.#family, `${this.#base}${sub}` as const, this.#params, over(this.#shared, shared))
  }

  /** The same place, for operations that have more in common. */
  with<const T extends Shared>(shared: T): Place<Base, Params, Over<S, T>> {
    return new Place(this.#family, this.#base, this.#params, over(this.#shared, shared))
  }

  get<const Id extends string, const Sub extends string, const O extends Own>(id: Id, sub: Sub, own: O) {
    return this.#declare('GET', id, sub, own)
  }

  post<const Id extends string, const Sub extends string, const O extends Own>(id: Id, sub: Sub, own: O) {
    return this.#declare('POST', id, sub, own)
  }

  put<const Id extends string, const Sub extends string, const O extends Own>(id: Id, sub: Sub, own: O) {
    return this.#declare('PUT', id, sub, own)
  }

  patch<const Id extends string, const Sub extends string, const O extends Own>(id: Id, sub: Sub, own: O) {
    return this.#declare('PATCH', id, sub, own)
  }

  delete<const Id extends string, const Sub extends string, const O extends Own>(id: Id, sub: Sub, own: O) {
    return this.#declare('DELETE', id, sub, own)
  }

  #declare<M extends Method, Id extends string, Sub extends string, O extends Own>(
    method: M,
    id: Id,
    sub: Sub,
    own: O,
  ): Declared<M, Id, `${Base}${Sub}`, Params, S, O> {
    const path = `${this.#base}${sub}` as const
    const shared = over<S, O>(this.#shared, own)
    if ((shared.accepts !== undefined) !== 202 in (shared.replies ?? {}))
      throw new Error(`${id}: who answers 202 says what it accepts, and nobody else does`)
    const place = { id, method, path, family: this.#family, problems: shared.problems ?? [] }
    return { ...shared, ...place, ...paramsIn(path, this.#params) }
  }
}

/** A family of operations below `base`, whose path parameters are among `params`. */
export const family = <const Base extends string, const Params extends Fields, const S extends Shared>(
  of: Family,
  base: Base,
  params: Params,
  shared: S,
): Place<Base, Params, Omit<S, keyof Lists>> => new Place(of, base, params, shared)

// The compiler takes a spread for the intersection of both, so it is told: what `own` says wins.
const over = <S, T extends Shared>(shared: Shared & S, own: T): Shared & Over<S, T> =>
  ({ ...shared, ...own, ...sum(shared, own) }) as Shared & Over<S, T>

function sum(above: Lists, own: Lists): Lists {
  const headers = [...(above.headers ?? []), ...(own.headers ?? [])]
  const replyHeaders = [...(above.replyHeaders ?? []), ...(own.replyHeaders ?? [])]
  const problems = [...(above.problems ?? []), ...(own.problems ?? [])]
  return {
    ...(headers.length === 0 ? {} : { headers }),
    ...(replyHeaders.length === 0 ? {} : { replyHeaders }),
    ...(problems.length === 0 ? {} : { problems }),
  }
}

type Split<Path extends string, Name extends string> = Path extends `${infer Before}{${Name}}${infer After}`
  ? `${Before}{dir}/{base}${After}`
  : Path
type FieldsOf<O> = O extends { readonly params: { readonly properties: infer F extends Fields } } ? F : Fields
type Twin<O, Name extends string, Apart> = O extends Operation
  ? Omit<O, 'id' | 'path' | 'params'> & {
      readonly id: `${O['id']}-qualified`
      readonly path: Split<O['path'], Name>
      readonly params: ObjectSchema<Omit<FieldsOf<O>, Name> & Apart>
      readonly twin: { readonly of: O['id']; readonly name: Name }
    }
  : never

/**
 * The operations, and a twin of each for names of two parts: where the path has `{name}`, that of the twin has
 * `{dir}/{base}`. Handlers are called with the one name `<dir>/<base>` either way.
 */
export function qualified<const Name extends string, Apart extends Fields, const O extends readonly Operation[]>(
  name: Name,
  apart: Apart,
  operations: O,
): readonly [...O, ...{ [K in keyof O]: Twin<O[K], Name, Apart> }] {
  const twins: readonly Operation[] = operations.map((operation) => {
    const { [name]: _, ...others }: Fields = operation.params?.properties ?? {}
    const path = operation.path.replace(`{${name}}`, '{dir}/{base}')
    const params = paramsIn(path, { ...others, ...apart })
    return { ...operation, id: `${operation.id}-qualified`, path, ...params, twin: { of: operation.id, name } }
  })
  // The compiler follows each of them through the map.
  return [...operations, ...twins] as never
}

/** Names of the path parameters, in order. */
export function pathParameters(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
}

function paramsIn<Path extends string, Params extends Fields>(path: Path, params: Params): ParamsIn<Path, Params> {
  const fields: Record<string, Fields[string]> = {}
  for (const name of pathParameters(path)) {
    const schema = params[name]
    if (schema === undefined) throw new Error(`no schema for {${name}} of ${path}`)
    fields[name] = schema
  }
  // The names are taken out of the path by the compiler and here alike.
  return (Object.keys(fields).length === 0 ? {} : { params: object(fields) }) as ParamsIn<Path, Params>
}
