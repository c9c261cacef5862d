/**
 * What `npm run check` sees instead of a text that `slice` shortens to a limit: such a cut can leave half of an emoji, which
 * strict readers of JSON refuse. `cut` and `cutStart` of `src/contract/base/text.ts` never do. A place that was searched for
 * (`text.slice(0, text.indexOf(':'))`) is no limit.
 */
interface ShortenTextsByCut {
  readonly place: 'src/contract/base/text.ts'
}

type Limit<Given extends number> = number extends Given ? never : `${Given}` extends `-${string}` ? never : Given

interface String {
  slice<Given extends number>(start: 0, end: Given & Limit<Given>): symbol & ShortenTextsByCut
  substring<Given extends number>(start: 0, end: Given & Limit<Given>): symbol & ShortenTextsByCut
}
