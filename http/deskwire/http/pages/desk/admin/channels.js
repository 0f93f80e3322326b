// @ts-check
/** Channels: the widgets by which customers write, and one channel with its settings, its code for the website, and a preview. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "./channel-texts.js";
import { t as admin } from "./texts.js";
import { Ago, Button, Empty, Name, notify } from "../ui/parts.js";
import { Dialog } from "../ui/dialog.js";
import { ROOT, call, newKey } from "../core/api.js";
import { go } from "../core/session.js";
import { Frame, Pairs, Section } from "../ui/frame.js";
import { ListTable } from "../ui/table.js";
import { States, useCall, useList } from "../ui/loading.js";
import { ConflictDialog, useSave } from "../ui/conflict.js";
import { Field, Form } from "../ui/form.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Secret } from "../ui/secret.js";
import { Link } from "../ui/link.js";
import { useRefreshOnEvents } from "../ui/auto-refresh.js";
import { Install, SiteCheck } from "./channel-site.js";
import { Conversations, Identity, Look, Settings, Visitors, Origins, originsIn } from "./channel-forms.js";
/** @import { Values } from "../ui/form.js" */

/** @param {{id: string|null}} props */
export const Page = ({ id }) => (id ? html`<${ChannelPage} key=${id} id=${id} />` : html`<${List} />`);

/** @param {{of: any}} props */
const State = ({ of }) => (of.enabled ? html`<span class="chip good">${t.enabled}</span>` : html`<span class="chip">${t.disabled}</span>`);

function List() {
  const of = useList("channels");
  useRefreshOnEvents((event) => event.type === "settings.changed" && event.data.what === "channels", of.renew);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState(/** @type {any} */ (null));
  const [key] = useState(newKey);
  const create = async (/** @type {Values} */ form) => {
    setMade(await call("POST", "channels", { key, body: { type: "widget", name: form.raw("name").trim(), origins: originsIn(form.raw("origins")) } }));
    setMaking(false);
  };
  const columns = [
    { label: t.name, cell: (/** @type {any} */ row) => html`<${Link} to=${`settings/channels/${row.id}`}><${Name} name=${row.name} /><//> <${State} of=${row} />` },
    { label: t.sites, cell: (/** @type {any} */ row) => (row.origins.length ? html`<span class="mono">${row.origins.slice(0, 3).join(", ")}${row.origins.length > 3 ? ` +${row.origins.length - 3}` : ""}</span>` : html`<span class="chip waits">${t.noSites}</span>`) },
    { label: t.identity, cell: (/** @type {any} */ row) => t.modes[/** @type {"none"} */ (row.identity.mode)] },
    { label: t.changed, less: true, cell: (/** @type {any} */ row) => html`<${Ago} at=${row.updatedAt} />` },
  ];
  const button = html`<${Button} icon="plus" kind="primary" label=${t.create} press=${() => setMaking(true)} />`;
  return html`<${Frame} title=${admin.pages.channels} calls=${[of.call]} actions=${of.items.length > 0 && button}>
    <p class="lead">${t.lead}</p>
    <${ListTable} of=${of} caption=${admin.pages.channels} columns=${columns} empty=${html`<${Empty} icon="chat" title=${t.none} text=${t.noneText} action=${button} />`} />
    ${making && html`<${Dialog} title=${t.create} close=${() => setMaking(false)}><div class="body"><${Form} save=${create} label=${t.createIt} cancel=${() => setMaking(false)}>
      <${Field} name="name" label=${t.name} hint=${t.nameHint} required maxlength="100" /><${Origins} />
    <//></div><//>`}
    ${made && html`<${Secret} title=${t.secretOf(made.name)} secret=${made.identity.secret} text=${t.secretText} close=${() => go(`settings/channels/${made.id}`)} />`}
  <//>`;
}

/** @param {{id: string}} props */
function ChannelPage({ id }) {
  const of = useCall(`channels/${id}`);
  const saving = useSave(of);
  const [saved, setSaved] = useState(0);
  const [open, setOpen] = useState(/** @type {"rotate"|"delete"|null} */ (null));
  const [secret, setSecret] = useState(/** @type {string|null} */ (null));
  const [key, setKey] = useState(newKey);
  const preview = usePreview(id);
  const close = () => setOpen(null);
  const channel = of.data;
  /** Save a part of the channel; false if a colleague has changed it first. @param {any} changes */
  const save = async (changes) => {
    const done = await saving.save("PATCH", `channels/${id}`, changes);
    if (done) (setSaved((n) => n + 1), preview.reset(), notify(t.saved));
    return done;
  };
  const rotate = async () => {
    const made = await call("POST", `channels/${id}/rotate-secret`, { key });
    setKey(newKey());
    setSecret(made.identity.secret);
    await of.reload();
  };
  const remove = async () => {
    await call("DELETE", `channels/${id}`);
    notify(t.deleted);
    queueMicrotask(() => go("settings/channels"));
  };
  const part = { channel, save };
  const actions = channel && html`<${Button} icon="close" label=${admin.delete} press=${() => setOpen("delete")} />`;
  return html`<${Frame} title=${channel?.name ?? t.one} face=${channel && html`<bdi>${channel.name}</bdi> <${State} of=${channel} />`} up=${{ to: "settings/channels", label: admin.pages.channels }} actions=${actions} calls=${[of.call]}>
    <${States} of=${of}>${() => html`<div class="columns channel">
      <div>
        <${Section} title=${t.install}><${Install} channel=${channel} /><${SiteCheck} channel=${channel} /><//>
        <${Section} title=${t.settings}><${Settings} ...${part} /><//>
        <${Section} title=${t.identity}><${Identity} ...${part} rotate=${() => setOpen("rotate")} /><//>
        <${Section} title=${t.visitors}><${Visitors} ...${part} /><//>
        <${Section} title=${t.look}><${Look} ...${part} preview=${preview.show} /><//>
        <${Section} title=${t.conversations}><${Conversations} ...${part} /><//>
        <${Section} title=${t.about}><${Pairs} of=${[[t.id, html`<code class="mono">${id}</code>`], [t.created, html`<${Ago} at=${channel.createdAt} />`], [t.changed, html`<${Ago} at=${channel.updatedAt} />`]]} /><//>
      </div>
      <div class="preview"><${Section} title=${t.preview} actions=${html`<a class="button small" href=${demoAddress(id)} target="_blank" rel="noopener">${t.openPreview}</a>`}>
        <p class="muted">${t.previewText}</p>
        <iframe key=${saved + saving.kept} src=${preview.src} title=${t.previewOf(channel.name)}></iframe>
      <//></div>
    </div>
    ${saving.conflict && html`<${ConflictDialog} ...${saving.conflict} fields=${saving.conflict.fields(t.fields)} />`}
    ${open === "rotate" && html`<${ConfirmDialog} deletes=${false} title=${t.rotate} loses=${[t.rotateLoses]} stays=${[t.rotateStays]} label=${t.rotateIt} run=${rotate} close=${close} />`}
    ${open === "delete" && html`<${ConfirmDialog} title=${t.deleteOne} loses=${t.loses(channel.name)} stays=${t.stays} word=${channel.name} label=${admin.delete} run=${remove} close=${close} />`}
    ${secret && html`<${Secret} title=${t.secretOf(channel.name)} secret=${secret} text=${t.rotated} close=${() => setSecret(null)} />`}`}<//>
  <//>`;
}

const PREVIEW_DELAY_MS = 400;

/** Show unsaved colour and position in the preview, shortly after the last change. @param {string} id */
function usePreview(id) {
  const timer = useRef(/** @type {any} */ (null));
  const [src, setSrc] = useState(demoAddress(id));
  useEffect(() => () => clearTimeout(timer.current), []);
  const show = (/** @type {Record<string, string>} */ look) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSrc(`${demoAddress(id)}?${new URLSearchParams(look)}`), PREVIEW_DELAY_MS);
  };
  return { src, show, reset: () => (clearTimeout(timer.current), setSrc(demoAddress(id))) };
}

/** Return the address of a page that shows the widget. @param {string} id */
const demoAddress = (id) => `${ROOT}widget/${id}/demo`;
