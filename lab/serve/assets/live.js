// Follows a run in progress: the server sends an event for each new sample.
(function () {
'use strict';
const live = document.getElementById('live');
const at = id => document.getElementById(id);
const say = text => { at('note').textContent = text; };
if (live.dataset.running !== 'true') return;

const mostLines = 50;
function element(name, text, kind) {
  const e = document.createElement(name);
  e.textContent = text;
  if (kind) e.className = kind;
  return e;
}

// The newest attempt is the first line.
function line(a) {
  const li = element('li', '', a.counts ? '' : 'lost');
  li.append(element('time', a.time), ' ', element('b', a.scenario), ` trial ${a.trial}${a.attempt ? ` (attempt ${a.attempt})` : ''}: ${a.text}`);
  at('lines').prepend(li);
  while (at('lines').children.length > mostLines) at('lines').lastElementChild.remove();
}

function state(v) {
  at('status').textContent = v.status;
  at('status').className = 'status ' + v.status;
  at('count').textContent = `${v.measured} of ${v.total} trials measured`;
  at('left').textContent = v.left;
  at('bar').max = v.total;
  at('bar').value = v.measured;
  at('rows').replaceChildren(...v.rows.map(r => {
    const tr = document.createElement('tr'), head = element('th', r.scenario);
    head.scope = 'row';
    const cells = r.skipped ? ['skipped', '—', '—', r.skipped] : [r.trials, r.median, String(r.rejected), r.newest];
    tr.append(head, ...cells.map((text, i) => element('td', text, i < 3 ? 'n' : 'text')));
    return tr;
  }));
}

function ended(status) {
  at('status').textContent = status;
  at('status').className = 'status ' + status;
  at('left').textContent = '';
  if (status === 'deleted') { say('The run was deleted.'); return; }
  const link = element('a', 'Its report');
  link.href = live.dataset.events.replace(/\/events$/, '');
  at('note').replaceChildren('The run has ended. ', link, ' has all figures.');
}

const source = new EventSource(`${live.dataset.events}?after=${live.dataset.after}`);
source.addEventListener('open', () => say('New trials appear here.'));
source.addEventListener('trial', e => line(JSON.parse(e.data)));
source.addEventListener('state', e => state(JSON.parse(e.data)));
source.addEventListener('end', e => { source.close(); ended(JSON.parse(e.data).status); });
source.addEventListener('error', () => say(source.readyState === EventSource.CLOSED ? 'The server does not answer. Reload the page.' : 'The connection is lost. The page connects again.'));
})();
