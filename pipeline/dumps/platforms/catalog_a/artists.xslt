<!-- What is taken out of <artist> records: one section. The other personas under <aliases> are artists of their own, with their own ids.
     The <realname> of a group names its members. -->
<!DOCTYPE xsl:stylesheet [
<!ENTITY value "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD0;</xsl:text>">
<!ENTITY row "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD1;</xsl:text>">
<!ENTITY item "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD4;</xsl:text>">
]>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text" encoding="UTF-8"/>
  <xsl:template match="/artists">
    <xsl:for-each select="artist">
      <xsl:value-of select="id"/>&value;
      <xsl:value-of select="name"/>&value;
      <xsl:value-of select="contains(profile, 'DO NOT USE')"/>&value;
      <xsl:value-of select="realname[not(../members)]"/>&value;
      <xsl:for-each select="namevariations/name"><xsl:value-of select="."/>&item;</xsl:for-each>&row;
    </xsl:for-each>
  </xsl:template>
</xsl:stylesheet>
