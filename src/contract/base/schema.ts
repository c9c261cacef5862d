/**
 * Builders of JSON Schema. A schema is the plain object that the documents show and the validators compile; the type of
 * the values that it takes is known to the compiler alone, so that importing the contract costs next to nothing.
 *
 * Objects are closed: a field that is not declared is refused. Those that take anything else say so (`openObject`).
 */

declare const VALUE: unique symbol
/** Marks a field that may be absent. A symbol, because JSON and validators do not see it. */
const OPTIONAL: unique symbol = Symbol('optional')

/** JSON Schema keywords of which nobody knows which values they take. */
interface Keywords {
  readonly [keyword: string]: unknown
}

/** A schema of `Value`s. */
export interface Schema<Value = unknown> extends Keywords {
  /** Never there: it carries the type. */
  readonly [VALUE]?: Value
}

/** The values that a schema takes. */
export type Static<S> = S extends { readonly [VALUE]?: infer Value } ? Value : never

export interface Fields {
  readonly [name: string]: Schema
}
type Optional<S> = S & { readonly [OPTIONAL]: true }
type OptionalKeys<F> = { [K in keyof F]: F[K] extends { readonly [OPTIONAL]: true } ? K : never }[keyof F]
type Flat<T> = { [K in keyof T]: T[K] }

/** The object with these fields. */
export type ObjectOf<F> = Flat<
  { [K in Exclude<keyof F, OptionalKeys<F>>]: Static<F[K]> } & { [K in OptionalKeys<F>]?: Static<F[K]> }
>

export interface ObjectSchema<F extends Fields = Fields> extends Schema<ObjectOf<F>> {
  readonly type: 'object'
  readonly properties: F
  readonly required?: readonly string[]
}

/** What every schema may say besides its kind. */
interface Options {
  /** Makes it a component of this name in the documents. */
  readonly $id?: string
  readonly description?: string
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  /** Annotation for the loader of configuration. */
  readonly 'x-svc'?: unknown
}
interface TextOptions extends Options {
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  /** It is a secret: no answer and no error shows it. */
  readonly writeOnly?: true
  readonly format?: string
  readonly not?: Keywords
  /** Shortest duration that the loader of configuration takes. */
  readonly minimumMs?: number
}
interface NumberOptions extends Options {
  readonly minimum?: number
  readonly maximum?: number
}
interface ListOptions extends Options {
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
}
interface ObjectOptions extends Options {
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly propertyNames?: Keywords
}

export const string = (options?: TextOptions): Schema<string> => ({ type: 'string', ...options })
export const integer = (options?: NumberOptions): Schema<number> => ({ type: 'integer', ...options })
export const number = (options?: NumberOptions): Schema<number> => ({ type: 'number', ...options })
export const boolean = (options?: Options): Schema<boolean> => ({ type: 'boolean', ...options })

/** Any JSON. */
export const anything = (options?: Options): Schema => ({ ...options })

export const literal = <const Value extends string | number | boolean>(
  value: Value,
  options?: Options,
): Schema<Value> => ({ type: typeof value, const: value, ...options })

/** One of these words. */
export const choice = <const Values extends readonly string[]>(
  values: Values,
  options?: Options,
): Schema<Values[number]> => ({ enum: values, ...options })

export const array = <S extends Schema>(items: S, options?: ListOptions): Schema<Static<S>[]> => ({
  type: 'array',
  items,
  ...options,
})

export const union = <const S extends readonly Schema[]>(anyOf: S, options?: Options): Schema<Static<S[number]>> => ({
  anyOf,
  ...options,
})

export const NULL: Schema<null> = { type: 'null' }

/** It, or null. */
export const nullable = <S extends Schema>(schema: S, options?: Options): Schema<Static<S> | null> => ({
  anyOf: [schema, NULL],
  ...options,
})

/** The same, with words of its own where it is used. */
export const described = <S extends Schema>(schema: S, description: string): Schema<Static<S>> => ({
  allOf: [schema],
  description,
})

/** Values of one kind under keys that are anybody's. */
export const record = <S extends Schema>(values: S, options?: ObjectOptions): Schema<{ [key: string]: Static<S> }> => ({
  type: 'object',
  additionalProperties: values,
  ...options,
})

/** Keywords as they stand, of which the caller knows which values they take. */
export const raw = <Value>(keywords: Keywords): Schema<Value> => keywords

/** The field may be absent. */
export const optional = <S extends Schema>(schema: S): Optional<S> => ({ ...schema, [OPTIONAL]: true })

/** An object with these fields and no others. */
export const object = <F extends Fields>(fields: F, options?: ObjectOptions): ObjectSchema<F> => ({
  ...part(fields),
  additionalProperties: false,
  ...options,
})

/** A closed object that is a component of this name in the documents. */
export const component = <F extends Fields>(name: string, fields: F, options?: ObjectOptions): ObjectSchema<F> =>
  object(fields, { $id: name, ...options })

/** An object with these fields, and whatever else. */
export const openObject = <F extends Fields>(fields: F, options?: ObjectOptions): ObjectSchema<F> => ({
  ...part(fields),
  additionalProperties: true,
  ...options,
})

/** Some fields of an object, which says nothing of others: what they are part of can be closed. */
export const part = <F extends Fields>(fields: F, options?: ObjectOptions): ObjectSchema<F> => {
  const required = Object.entries(fields).flatMap(([name, schema]) => (OPTIONAL in schema ? [] : [name]))
  return { type: 'object', ...(required.length === 0 ? {} : { required }), properties: fields, ...options }
}
