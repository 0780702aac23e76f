"""Adapters: a module or package per platform key, each with a `stage` function.

The folders of CATALOG_PLATFORM_FOLDERS extend this package, so an added platform is imported like a shipped one.
"""

from catalog_store.platform_files import list_added_folders

__path__ += [str(folder) for folder in list_added_folders()]
