// Give photos a type where the system knows none, as HEIC on Linux; Gradio
// refuses them otherwise. Remember the folders of files, which Gradio drops,
// in the order of its upload: of a chosen folder, or of folders and files
// dropped on a tab.
(() => {
  const isForm = (event) => event.target.closest?.('.photo-folder');
  const promise = (source, name) =>
    new Promise((resolve, reject) => source[name](resolve, reject));

  async function walk(entry, found) {
    if (entry.isFile) {
      found.push([entry.fullPath.slice(1), await promise(entry, 'file')]);
      return;
    }
    const reader = entry.createReader();
    let part;
    do {
      part = await promise(reader, 'readEntries'); // at most 100 of them
      for (const inner of part) await walk(inner, found);
    } while (part.length);
  }

  function remember(paths) {
    for (const box of document.querySelectorAll('.paths textarea')) {
      box.value = JSON.stringify(paths);
      box.dispatchEvent(new Event('input'));
    }
  }

  const isPhoto = (event) => event.target.closest?.('#leaf');
  const typed = (file) => file.type ? file : new File(
    [file], file.name, { type: `image/${file.name.split('.').pop()}` });

  function send(input, files) {
    const data = new DataTransfer();
    files.forEach((file) => data.items.add(file));
    input.files = data.files;
  }

  document.addEventListener('click', (event) => {
    const input = isPhoto(event)?.querySelector('input[type=file]');
    if (input) input.accept = 'image/*,.heic,.heif';
  }, true);

  document.addEventListener('change', (event) => {
    const files = [...(event.target.files || [])];
    if (isPhoto(event) && files.some((file) => !file.type))
      send(event.target, files.map(typed));
    if (isForm(event) || event.target.accept === '.zip')
      remember(files.map((file) => file.webkitRelativePath || file.name));
  }, true);

  document.addEventListener('drop', async (event) => {
    const zone = isForm(event) || isPhoto(event);
    const input = zone?.querySelector('input[type=file]');
    if (!input) return;
    event.preventDefault();
    event.stopPropagation();
    event.target.dispatchEvent(new Event('dragleave', { bubbles: true }));
    if (isPhoto(event)) {
      send(input, [...event.dataTransfer.files].slice(0, 1).map(typed));
      input.dispatchEvent(new Event('change', { bubbles: true }));
      return;
    }
    const entries = [...event.dataTransfer.items].map(
      (item) => item.webkitGetAsEntry());
    const found = [];
    try {
      for (const entry of entries.filter(Boolean)) await walk(entry, found);
    } catch (error) {
      alert(mmclcaTexts.unreadable.replace('{problem}', error.message));
      return;
    }
    send(input, found.map(([, file]) => file));
    input.dispatchEvent(new Event('change', { bubbles: true }));
    remember(found.map(([path]) => path));
  }, true);
})();
