/** Lists: one page when awaited, all items when iterated. */

interface PageBody {
  items: readonly unknown[];
  nextCursor: string | null;
}

/** The type of the items of a page. */
export type Item<Body extends PageBody> = Body["items"][number];

type AsOf<Body> = Body extends { asOf: infer Position } ? Position : undefined;

/** A page of a list. Iterating it reads this page and all following ones. */
export class Page<Body extends PageBody> implements AsyncIterable<Item<Body>> {
  readonly items: Body["items"];
  /** The `cursor` of the next page, null on the last one. */
  readonly nextCursor: string | null;
  /** The newest event at the first page, for lists that a mirror starts from; else undefined. */
  readonly asOf: AsOf<Body>;
  /** The page as the service sent it, with all fields. */
  readonly body: Body;
  readonly #fetchPage: (cursor: string | null) => Promise<Body>;

  constructor(body: Body, fetchPage: (cursor: string | null) => Promise<Body>) {
    this.body = body;
    this.items = body.items;
    this.nextCursor = body.nextCursor ?? null;
    this.asOf = (body as { asOf?: unknown }).asOf as AsOf<Body>;
    this.#fetchPage = fetchPage;
  }

  /** Return the next page, or null on the last one. */
  async next(): Promise<Page<Body> | null> {
    return this.nextCursor === null ? null : new Page(await this.#fetchPage(this.nextCursor), this.#fetchPage);
  }

  /** Yield this page and all following ones. */
  async *pages(): AsyncGenerator<Page<Body>, void, undefined> {
    for (let page: Page<Body> | null = this; page !== null; page = await page.next()) yield page;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item<Body>, void, undefined> {
    for await (const page of this.pages()) yield* page.items as Iterable<Awaited<Item<Body>>>;
  }
}

/** A list that was not fetched yet: await it for its first page, or iterate it for all items. */
export class PagePromise<Body extends PageBody> implements Promise<Page<Body>>, AsyncIterable<Item<Body>> {
  readonly #fetchPage: (cursor: string | null) => Promise<Body>;
  #first: Promise<Page<Body>> | undefined;

  constructor(fetchPage: (cursor: string | null) => Promise<Body>) {
    this.#fetchPage = fetchPage;
  }

  get [Symbol.toStringTag](): string {
    return "PagePromise";
  }

  then<A = Page<Body>, B = never>(
    done?: ((page: Page<Body>) => A | PromiseLike<A>) | null,
    failed?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#page().then(done, failed);
  }

  catch<B = never>(failed?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<Page<Body> | B> {
    return this.#page().catch(failed);
  }

  finally(settled?: (() => void) | null): Promise<Page<Body>> {
    return this.#page().finally(settled);
  }

  /** Yield all pages. */
  async *pages(): AsyncGenerator<Page<Body>, void, undefined> {
    yield* (await this.#page()).pages();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item<Body>, void, undefined> {
    yield* await this.#page();
  }

  #page(): Promise<Page<Body>> {
    this.#first ??= this.#fetchPage(null).then((body) => new Page(body, this.#fetchPage));
    return this.#first;
  }
}
