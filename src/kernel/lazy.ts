/** Made when it is first asked for: a package that most processes never use costs their start nothing. */
export function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
