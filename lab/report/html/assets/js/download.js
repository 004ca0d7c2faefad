// ---- the raw figures.
const download = document.getElementById('download');
if (download) download.addEventListener('click', async event => {
  if (download.dataset.ready) return; // the second click is the browser's
  event.preventDefault();
  const packed = Uint8Array.from(atob(document.getElementById('raw').textContent.trim()), c => c.charCodeAt(0));
  const json = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).blob();
  download.href = URL.createObjectURL(new Blob([json], { type: 'application/json' }));
  download.dataset.ready = 'yes';
  download.click();
});
