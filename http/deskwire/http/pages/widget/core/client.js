// @ts-check
/** The object that a user interface works with: it joins storage, session, outbox, stream and state. */
import { Offline, Problem, call as callUrl, randomId, retryDelay } from "./api.js";
import { createOutbox } from "./outbox.js";
import { createSession } from "./session.js";
import { EMPTY, isLocal, lacksLastMessage, leavesGap, newestIndex, reduce, resolve } from "./state.js";
import { Records, openStorage } from "./storage.js";
import { follow } from "./stream.js";
/** @import { Conversation, Customer, Message, Options } from "../customer.js" */
/** @import { CallOptions } from "./api.js" */
/** @import { Change } from "./state.js" */

const READ_DELAY_MS = 300;
const MARKS_RETRY_DELAY_MS = 10_000;
const TYPING_INTERVAL_MS = 3_000;
const TYPING_TIMEOUT_MS = 12_000;
const CONTEXT_DELAY_MS = 1_000;
const SIGN_OUT_TIMEOUT_MS = 3_000;
const REFUSED_RETRY_DELAY_MS = 60_000;
const PAGE_SIZE = 50;
const PAGE = "page ";

/** Create the customer's side of a channel. Nothing is sent before `start` or `send`. @param {Options} options @returns {Customer} */
export function createCustomer(options) {
  const root = `${options.baseUrl.replace(/\/$/, "")}/v3/customer/`;
  let { identity } = options;
  let state = EMPTY;
  /** @type {Set<(state: import("../customer.js").State) => void>} */
  const listeners = new Set(options.onState ? [options.onState] : []);
  let notifying = false;
  /** @type {Records} */
  let records;
  /** @type {ReturnType<typeof createOutbox>} */
  let outbox;
  /** @type {ReturnType<typeof createSession>} */
  let session;
  /** @type {AbortController|null} Ends the connection; null while there is none. */
  let running = null;
  /** @type {Set<string>} The messages written before this page knew the contact of its session. */
  const early = new Set();
  /** @type {string|null} */
  let cursor = null;
  let hurry = () => {};
  /** Counts the contacts that this page has shown. */
  let contacts = 0;
  /** @type {any} */
  let pageContext = null;
  /** @type {Map<string, string|null>} Cursors of older messages by conversation, and of older conversations under "". */
  const older = new Map();

  /** @param {Change} change */
  function dispatch(change) {
    const next = reduce(state, change);
    if (next === state) return;
    state = next;
    if (notifying) return;
    notifying = true;
    queueMicrotask(() => {
      notifying = false;
      for (const each of [...listeners]) each(state);
    });
  }
  /** @param {Partial<import("./state.js").Full>} value */
  const set = (value) => dispatch({ type: "set", value });
  const post = (/** @type {any} */ message) => records.storage.post?.(message);
  /** Take a change of this tab or another one. @param {Change} change */
  function take(change) {
    const message = change.type === "sent" ? change.message : null;
    const gap = message && leavesGap(state, { data: { conversation: { id: message.conversationId }, message } });
    dispatch(change);
    if (gap) void loadMessages(message.conversationId).catch(() => {}); // else the stream brings what is missing
    if (message && leading && state.connection !== "online") hurry(); // the service answers again
  }
  /** Change the state of all tabs. @param {Change} change */
  const share = (change) => (take(change), post({ change }));
  const showOutbox = () => set({ entries: outbox.all().filter(({ clientId, owner }) => early.has(clientId) || (session.known() && owner === session.stored()?.contact.userId)) });

  // Calls.

  /** @param {string} method @param {string} path @param {CallOptions} [options] @param {string|null} [token] */
  async function call(method, path, options, token = session.stored()?.token ?? null) {
    try {
      return await callUrl(root + path, method, token, options);
    } catch (error) {
      if (token && error instanceof Problem && error.status === 401) session.ended(token);
      throw error;
    }
  }

  /** Call with the session; get a new one if it has ended. @param {string} method @param {string} path @param {CallOptions} [options] */
  async function request(method, path, options) {
    await opened;
    for (let attempt = 0; ; attempt++) {
      const { token } = await signIn();
      const mine = contacts;
      try {
        const answer = await call(method, path, options, token);
        if (mine === contacts) return answer;
      } catch (error) {
        if (attempt || !(error instanceof Problem) || error.status !== 401) throw error;
        continue;
      }
      throw new Offline(); // the response is for another contact
    }
  }
  const get = (/** @type {string} */ path) => request("GET", path);
  /** The path of a conversation. @param {string} id */
  const path = (id) => `conversations/${resolve(state, id)}`;

  // Storage and session.

  const opened = (async () => {
    const { storage, place } = await openStorage(options);
    records = new Records(storage);
    session = createSession({
      records, channelId: options.channelId, identity: () => identity, call, leaving: reset,
      flush: (token) => outbox.flush(token),
      began: ({ contact, cursor: at }, step, givenUp) => {
        post({ session: step });
        if (step === "switch" || (step !== "upgrade" && state.me && state.me.userId !== contact.userId)) reset();
        cursor = at ?? null;
        if (leading) hurry();
        if (givenUp) set({ problem: { code: "messages_given_up", detail: `Unsent messages of the previous customer: ${givenUp}.` } });
      },
    });
    outbox = createOutbox({
      records, refresh: showOutbox, call, signIn: () => signIn(),
      about: () => ({ ...(pageContext ? { context: pageContext } : {}), ...(!session.stored()?.contact.id && records.get("me") ? { contact: records.get("me") } : {}) }),
      changed: (change) => {
        share(change);
        if (change.type === "sent") void sent(change);
      },
    });
    storage.listen?.(onMessage);
    set({ storage: place });
    await records.refresh();
    for (const owner of new Set(outbox.all().map((each) => each.owner))) if (owner.startsWith(PAGE)) void records.lock(owner, () => adopt(owner));
    showOutbox();
    await outbox.cleanUp();
  })();

  // A message that is written before its page knows the contact is the page's own, and no other page sends it while that page is open.

  const thisPage = PAGE + randomId();
  /** @type {Promise<void>|null} */
  let holding = null;
  /** Hold the lock that shows other pages that this one is open. */
  const hold = () => (holding ??= new Promise((done) => void records.lock(thisPage, () => (done(), new Promise(() => {})))));

  /** Take over the messages of a page that was closed: they are of the contact whose session is stored, or of the next one. @param {string} owner */
  async function adopt(owner) {
    await records.refresh();
    for (const each of outbox.all()) if (each.owner === owner) early.add(each.clientId);
    const userId = session.stored()?.contact.userId;
    if (userId) await assign(userId);
    showOutbox();
    void outbox.pump();
  }

  /** Give the early messages to a contact. @param {string} userId */
  async function assign(userId) {
    await records.change(() => Object.fromEntries(outbox.all().filter(({ clientId }) => early.has(clientId)).map((each) => [`message:${each.clientId}`, { ...each, owner: userId }])));
    early.clear();
  }

  /** @param {any} message  of another tab */
  async function onMessage({ changed, session: step, signingOut, signedOut, change, events, at, hello, ask, connection }) {
    if (signingOut) leave();
    if (changed || step || signedOut) await records.refresh();
    if (signedOut) {
      outbox.resume();
      reset();
    }
    if (step) {
      meet(session.stored()?.contact);
      if (leading) hurry();
      if (running) void connect();
    }
    if (changed) {
      showOutbox();
      void outbox.pump();
    }
    if (change) take(change);
    if (events) onEvents(events, at);
    if (hello) onHello(hello);
    if (ask && leading) post({ connection: state.connection });
    if (connection && running) set({ connection });
  }

  /** Send nothing more for the contact. Before the session ends: else a refused call would open another one of the same contact. */
  function leave() {
    outbox.halt();
    customer.stop();
    identity = null;
    session.forget();
  }

  /** Forget the contact's data in this page. */
  function reset() {
    contacts += 1;
    const { open } = state;
    dispatch({ type: "reset" });
    cursor = etag = null;
    for (const each of [older, marks, marksToSend]) each.clear();
    showOutbox();
    if (open && state.conversations.has(open)) set({ open }); // the next contact has written in it already
  }

  /** Forget the shown data if it is another contact's; a visitor who signs in stays the same. @param {import("../customer.js").Contact} [contact]  of the stored session */
  function meet(contact) {
    if (state.me && state.me.userId !== contact?.userId && (state.me.verified || !contact?.verified)) reset();
  }

  /** Return the session, and show its contact. Throws Problem or Offline. @param {boolean} [check]  compare the identity again */
  async function signIn(check) {
    try {
      const found = await session.current(check);
      if (early.size) await assign(found.contact.userId);
      meet(found.contact);
      if (state.me?.userId !== found.contact.userId) set({ me: { ...found.contact, ...(found.contact.id ? null : records.get("me")) } });
      if (state.problem && state.problem.code !== "messages_given_up") set({ problem: null });
      showOutbox();
      return found;
    } catch (error) {
      if (error instanceof Problem && error.status !== 429) set({ problem: { code: error.code, detail: error.message } });
      throw error;
    }
  }

  // Lists and events.

  let connecting = 0;

  /** Sign in, load the lists and open the stream; try again until it succeeds. @param {boolean} [check] @param {number} [failures] */
  async function connect(check, failures = 0) {
    const mine = ++connecting;
    const run = running;
    try {
      const { contact } = await signIn(check);
      if (run !== running || !run) return;
      void lead(run);
      const fields = contact.id && records.get("me"); // given while there was no session
      if (fields) void request("PATCH", "me", { body: fields }).then(keepContact, (error) => error instanceof Problem && records.change(() => ({ me: null })));
      await reload();
      post({ ask: true }); // the tab with the stream says how it is
      outbox.retryNow();
      if (pageContext) sendContext();
    } catch (error) {
      if (mine !== connecting || run !== running || !run) return;
      set({ connection: "offline" });
      const waits = error instanceof Problem && error.status < 500 && error.status !== 429;
      const delay = (error instanceof Problem && error.retryAfterMs) || (waits ? REFUSED_RETRY_DELAY_MS : retryDelay(failures + 1));
      const timer = setTimeout(() => mine === connecting && run === running && void connect(check, failures + 1), delay);
      hurry = () => (clearTimeout(timer), void (mine === connecting && connect(check, failures + 1)));
    }
  }

  let leading = false;
  /** @type {AbortController|null} */
  let led = null;

  /** Hold the stream for all tabs, as soon as no other tab does. @param {AbortController} run */
  async function lead(run) {
    if (led === run) return;
    led = run;
    await records
      .lock(
        "stream",
        async () => {
          leading = true;
          try {
            await follow(
              {
                call: (path, options) => request("GET", path, options),
                cursor: () => cursor,
                hello: (at, resumed) => {
                  if (resumed) return;
                  post({ hello: at });
                  onHello(at);
                },
                events: (events, at) => {
                  onEvents(events, at);
                  post({ events, at });
                  reached(events);
                },
                passing: (event) => {
                  onPassing(event);
                  post({ change: typingChange(event) });
                },
                state: (connection) => {
                  const back = connection === "online" && state.connection !== "online";
                  set({ connection });
                  post({ connection });
                  if (back) outbox.retryNow();
                },
                hurried: (now) => (hurry = now),
              },
              run.signal,
            );
          } finally {
            leading = false;
          }
        },
        run.signal,
      )
      .catch(() => {}); // stopped
    if (led === run) led = null;
  }

  /** Load the lists: events before `at` are missing. @param {string} at */
  function onHello(at) {
    if (cursor) {
      // Events are missing that may have changed any of the loaded messages.
      set({ loaded: new Set() });
      etag = null;
      older.clear();
    }
    cursor = at;
    if (running) void withRetries(reload);
  }

  /** @type {string|null} */
  let etag = null;

  /** Load the list, unless it is unchanged. @param {string|null} known */
  async function loadList(known) {
    const before = [...state.conversations.keys()];
    const page = await request("GET", `conversations?limit=${PAGE_SIZE}`, { etag: known, answered: (response) => response.ok && (etag = response.headers.get("etag")) }); // not of a 304 to `badge`, after which there is no list yet
    if (!page) return false;
    if (!older.has("")) older.set("", page.nextCursor);
    dispatch({ type: "list", items: page.items, instead: page.nextCursor ? [] : before });
    for (const { id, unread, lastMessage } of /** @type {Conversation[]} */ (page.items)) if (unread && lastMessage && !lastMessage.author.self) mark(id, "reached", lastMessage.id);
    return true;
  }

  /** Load the newest conversations, and the newest messages of the open one. Throws Problem or Offline. */
  async function reload() {
    await Promise.all([loadList(etag), state.open && !isLocal(state.open) ? loadMessages(state.open) : null]);
    seen();
  }

  /** Load something, and try again until that succeeds or is not wanted after these failures. @param {() => Promise<void>} load @param {(failures: number) => unknown} [isWanted] @param {number} [failures] @returns {Promise<void>} */
  const withRetries = (load, isWanted = () => running, failures = 1) => load().catch(() => void setTimeout(() => isWanted(failures) && withRetries(load, isWanted, failures + 1), retryDelay(failures)));

  const loadChannel = async () => set({ channel: await callUrl(`${root}channels/${options.channelId}`, "GET", null) });

  /** Load the newest messages and the waiting step. @param {string} id */
  async function loadMessages(id) {
    const known = resolve(state, id);
    if (state.listed && !state.conversations.has(known)) {
      dispatch({ type: "event", event: { data: { conversation: await get(path(id)) } } });
      if (resolve(state, id) !== known) return void (await loadMessages(id)); // it was merged while this page was away
    }
    const [page, { step }] = await Promise.all([get(`${path(id)}/messages?order=desc&limit=${PAGE_SIZE}`), get(`${path(id)}/workflow`)]);
    const items = /** @type {Message[]} */ (page.items).slice().reverse();
    const before = state.messages.get(known) ?? [];
    const first = items.find(({ conversationId }) => conversationId === known);
    const touches = before.length && (!first || first.index <= newestIndex(before, known) + 1);
    if (!touches || !older.has(known)) older.set(known, page.nextCursor);
    dispatch({ type: "messages", id: known, items });
    dispatch({ type: "step", id: known, step });
  }

  /** @param {any[]} events @param {string} at */
  function onEvents(events, at) {
    for (const event of events) {
      const gap = leavesGap(state, event);
      const { loaded } = state;
      dispatch({ type: "event", event });
      const conversation = event.data?.conversation;
      // A merge or its undo has changed the thread that is open.
      const id = state.open && loaded.size > state.loaded.size ? state.open : conversation?.id;
      if (gap || id !== conversation?.id) void loadMessages(id).catch(() => {});
      else if (/^workflow\./.test(event.type) && !event.data.step && id === state.open) dispatch({ type: "step", id, step: null });
    }
    if (events.some(({ data }) => lacksLastMessage(state.conversations.get(data?.conversation?.id)))) void withRetries(reload);
    if (at > (cursor ?? "")) cursor = at;
    seen();
  }

  /** @type {Map<string, ReturnType<typeof setTimeout>>} */
  const typists = new Map();
  /** @param {any} event @returns {Change} */
  const typingChange = ({ type, data }) => ({ type: "typing", id: data.conversationId, name: type === "agent.typing.started" ? data.agent.name : null });
  /** @param {any} event */
  function onPassing(event) {
    dispatch(typingChange(event));
    const { conversationId: id } = event.data;
    clearTimeout(typists.get(id));
    typists.set(id, setTimeout(() => share({ type: "typing", id, name: null }), TYPING_TIMEOUT_MS));
  }

  // Read marks: `reached` by the tab that holds the stream, `seen` by the tab that shows the conversation.

  /** @type {Map<string, {reached?: string, seen?: string}>} */
  const marks = new Map();
  /** @type {Map<string, {reached?: string, seen?: string}>} */
  const marksToSend = new Map();
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let markTimer;

  /** @param {string} id @param {"reached"|"seen"} kind @param {string} messageId */
  function mark(id, kind, messageId) {
    const before = marks.get(id) ?? {};
    if ((before[kind] ?? "") >= messageId) return;
    marks.set(id, { ...before, [kind]: messageId });
    marksToSend.set(id, { ...marksToSend.get(id), [kind]: messageId });
    markTimer ??= setTimeout(sendMarks, READ_DELAY_MS);
  }
  /** @param {any[]} events */
  function reached(events) {
    for (const { data } of events) if (data?.message && !data.message.author.self) mark(data.conversation.id, "reached", data.message.id);
  }

  async function sendMarks() {
    markTimer = undefined;
    for (const [id, body] of [...marksToSend]) {
      marksToSend.delete(id);
      try {
        const conversation = await request("POST", `conversations/${id}/read`, { body });
        if (conversation?.id) share({ type: "list", items: [conversation] });
      } catch (error) {
        if (error instanceof Problem && error.status < 500 && error.status !== 429) continue;
        marksToSend.set(id, { ...body, ...marksToSend.get(id) });
        if (running) markTimer ??= setTimeout(sendMarks, MARKS_RETRY_DELAY_MS);
      }
    }
  }

  /** Mark the open conversation as seen if the page is visible. */
  function seen() {
    const { open } = state;
    if (!open || globalThis.document?.visibilityState === "hidden" || !running) return;
    const newest = state.messages.get(open)?.filter(({ author }) => !author.self).pop();
    if (newest) mark(open, "seen", newest.id);
  }

  /** After a message: the first one makes a visitor a contact. @param {Change & {type: "sent"}} change */
  async function sent({ conversation }) {
    const { open } = state;
    if (open && !isLocal(open) && !state.loaded.has(open)) void loadMessages(open).catch(() => {});
    const found = session.stored();
    if (!conversation || !found || found.contact.id) return;
    const contact = await get("me").catch(() => null);
    if (contact) await keepContact(contact);
  }

  /** @param {any} contact */
  async function keepContact(contact) {
    set({ me: contact });
    await records.change(() => session.stored() && { session: { ...session.stored(), contact }, me: null });
  }

  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let contextTimer;
  function sendContext() {
    clearTimeout(contextTimer);
    contextTimer = setTimeout(() => {
      if (running && session.stored()?.contact.id) void request("PATCH", "me", { body: { context: pageContext } }).catch(() => {});
    }, CONTEXT_DELAY_MS);
  }

  /** Get the unread count by one conditional call. */
  async function badge() {
    if (!session.stored()) return;
    const known = records.get("badge");
    if (!(await loadList(known?.etag))) set({ badge: known.unread });
    else if (etag) await records.change(() => ({ badge: { etag, unread: state.unread } }));
  }

  let typingAt = -Infinity;
  if (typeof addEventListener === "function") {
    addEventListener("online", () => (hurry(), outbox?.retryNow()));
    addEventListener("offline", () => running && set({ connection: "offline" }));
    globalThis.document?.addEventListener("visibilitychange", seen);
    addEventListener("pageshow", (event) => event.persisted && hurry());
  }

  /** @type {Customer} */
  const customer = {
    get state() {
      return state;
    },
    async start({ passive = false } = {}) {
      await opened;
      if (passive) {
        if (outbox.all().length) void outbox.pump();
        return withRetries(badge, (failures) => failures < 4); // a page of an ended session must not poll
      }
      if (running) return;
      running = new AbortController();
      set({ connection: "connecting" });
      void withRetries(loadChannel);
      await connect();
    },
    stop() {
      running?.abort();
      running = null;
      hurry = () => {};
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async send({ conversation, text = "", attachments = [] }) {
      await opened;
      const clientId = randomId();
      const owner = (session.known() && session.stored()?.contact.userId) || thisPage;
      if (owner === thisPage) {
        await hold();
        early.add(clientId);
      }
      // The conversation's own client id, if it has one: messages from before and after its first response are sent in one order.
      const own = conversation && state.conversations.get(conversation)?.clientId;
      return outbox.add({ clientId, owner, conversation: own ? `client:${own}` : conversation, text, attachments });
    },
    async upload(file) {
      await opened;
      return outbox.addFile(file);
    },
    async open(conversation) {
      await opened;
      set({ open: conversation });
      if (!isLocal(resolve(state, conversation)))
        await loadMessages(conversation).catch((error) => {
          if (error instanceof Problem) throw error; // else it is loaded when the service answers
        });
      seen();
    },
    close: () => set({ open: null }),
    async older(conversation) {
      const id = resolve(state, conversation);
      const at = older.get(id);
      if (!at) return false;
      const page = await get(`${path(id)}/messages?order=desc&limit=${PAGE_SIZE}&cursor=${encodeURIComponent(at)}`);
      older.set(id, page.nextCursor);
      dispatch({ type: "messages", id, items: page.items.slice().reverse() });
      return Boolean(page.nextCursor);
    },
    async more() {
      const at = older.get("");
      if (!at) return false;
      const page = await get(`conversations?limit=${PAGE_SIZE}&cursor=${encodeURIComponent(at)}`);
      older.set("", page.nextCursor);
      dispatch({ type: "list", items: page.items });
      return Boolean(page.nextCursor);
    },
    typing(conversation, on) {
      const now = performance.now();
      if (isLocal(resolve(state, conversation)) || (on ? now - typingAt < TYPING_INTERVAL_MS : typingAt === -Infinity)) return;
      typingAt = on ? now : -Infinity;
      void request("POST", `${path(conversation)}/typing`, { body: { typing: on } }).catch(() => {});
    },
    async rate(conversation, rating, comment) {
      await request("POST", `${path(conversation)}/rating`, { body: { rating, ...(comment ? { comment } : {}) } });
    },
    async reply(conversation, actionId, value) {
      await request("POST", `${path(conversation)}/workflow/reply`, { body: { actionId, value } });
      const id = resolve(state, conversation);
      if (state.steps.get(id)?.actionId === actionId) share({ type: "step", id, step: null }); // else the next step is here already
    },
    async updateMe(fields) {
      await opened;
      await signIn().catch(() => {});
      if (session.stored()?.contact.id) return keepContact(await request("PATCH", "me", { body: fields }));
      await records.change(() => ({ me: { ...records.get("me"), ...fields } })); // sent with the first message, because until then there is no contact
      if (state.me) set({ me: { ...state.me, ...fields } });
    },
    context(context) {
      pageContext = context;
      sendContext();
    },
    async identify(next) {
      identity = next;
      await opened;
      if (running) await connect(true);
      else await signIn(true);
    },
    async signOut() {
      await opened;
      customer.stop();
      await Promise.race([outbox.pump(), new Promise((done) => setTimeout(done, SIGN_OUT_TIMEOUT_MS))]);
      leave();
      post({ signingOut: true });
      const givenUp = await records.lock("send", async () => {
        await records.refresh();
        const token = session.stored()?.token;
        if (token) await call("DELETE", "me", {}, token).catch(() => {});
        return session.deleteAll();
      });
      outbox.resume();
      post({ signedOut: true });
      reset();
      return { givenUp };
    },
    async retry(clientId) {
      await opened;
      await outbox.retry(clientId);
    },
    async discard(clientId) {
      await opened;
      return outbox.discard(clientId);
    },
    request: (method, path, body) => request(method, path, { body }),
  };
  return customer;
}
