// ---- each chart can be saved as SVG and as PNG.
async function save(place, kind) {
  const svg = place.querySelector('svg').cloneNode(true);
  const width = Number(svg.getAttribute('width')), height = Number(svg.getAttribute('height')), scale = 2;
  svg.setAttribute('style', 'background: ' + theme.ground);
  let url = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(new XMLSerializer().serializeToString(svg));
  if (kind === 'PNG') {
    const image = new Image(), canvas = Object.assign(document.createElement('canvas'), { width: width * scale, height: height * scale });
    image.src = url;
    await image.decode();
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    url = canvas.toDataURL('image/png');
  }
  Object.assign(document.createElement('a'), { href: url, download: place.id.replace(/^c-/, '') + '.' + kind.toLowerCase() }).click();
}
function offerFiles(place) {
  const offer = Object.assign(document.createElement('span'), { className: 'save' });
  offer.append(...['SVG', 'PNG'].map(kind => {
    const b = Object.assign(document.createElement('button'), { type: 'button', className: 'button', textContent: kind, title: 'Save this chart as ' + kind });
    b.addEventListener('click', () => save(place, kind));
    return b;
  }));
  place.before(offer);
}

